"""Test a task whose scorer measures baseline and reference together with every submission."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.scoring.score import main
from re_bench.task.discovery import open_task
from re_bench.task.interface import load_task
from re_bench.testing import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

MANIFEST = """\
id = "paced"
title = "Paced"
description = "A number, multiplied by the pace of the machine"
version = 1
direction = "lower"
aggregation = "min"
unit = "seconds"
submission = ["number"]

[profiles.cpu]
description = "small"
device = "cpu"
time_limit_s = 30
in_run = true
"""
CHEATS = {
    "letters": 'description = "words"\nexpect = "invalid"\nreason = "no number"\n',
    "elsewhere": 'description = "makes a graphics card lie"\nexpect = "invalid"\nprofiles = ["gpu", "paper"]\n',
    "slow": 'description = "pays on a card only"\nexpect = "invalid"\non.cpu = {expect = "no_better"}\n',
}
DEVICE = """\
[[profiles.cpu.devices]]
starting = 20.0
reference = 4.0
source = {kind = "measured", where = "x", hardware = "card A", date = 2026-01-31, repeats = 1, \
spread = {starting = 0, reference = 0}, versions = {}}
"""
SCORER = """
import os
from pathlib import Path
from re_bench.api import InvalidSubmissionError, RawScore, RunAnchors, Task, main

pace, device = float(os.environ.get("PACE", 1)), os.environ.get("DEVICE", "card A")
here = Path(__file__).parent

def measured(directory):
    try:
        return pace * float((directory / "number").read_text())
    except ValueError:
        raise InvalidSubmissionError("that is no number")

class Paced(Task):
    profiles = {"cpu": None}

    def score(self, job):
        given = os.environ.get("ANCHORS", f"{measured(here / 'baseline')} {measured(here / 'reference')}")
        anchors = RunAnchors(*map(float, given.split())) if given else None
        return RawScore(measured(job.submission), "fine", {"hardware": device} if device else {}, anchors)

if __name__ == "__main__":
    main(Paced())
"""
FIELDS = ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]


@pytest.fixture
def paced(tmp_path: Path) -> Path:
    """Return the directory of a task with stored anchors for one device."""
    task = tmp_path / "paced"
    for name, value in (
        ("baseline", "10"),
        ("reference", "2"),
        ("cheats/letters", "x"),
        ("cheats/elsewhere", "0"),
        ("cheats/slow", "11"),
    ):
        (task / name).mkdir(parents=True)
        (task / name / "number").write_text(value)
    for name, text in CHEATS.items():
        (task / "cheats" / name / "cheat.toml").write_text(text)
    (task / "task.toml").write_text(MANIFEST)
    (task / "anchors.toml").write_text(DEVICE)
    (task / "score.py").write_text(SCORER)
    return task


@pytest.fixture
def score(
    paced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str]]:
    """Return a function that runs the task's ``score.py`` on a number; it returns exit status and output."""

    def run(number: str, *arguments: str, **environment: str) -> tuple[object, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "submission").mkdir(exist_ok=True)
        (tmp_path / "submission" / "number").write_text(number)
        with pytest.raises(SystemExit) as end:
            main(load_task(open_task(paced)), ["--solution", str(tmp_path / "submission"), *arguments])
        return end.value.code, capfd.readouterr().out

    return run


def result(output: str) -> dict[str, Any]:
    values = json.loads(output)
    assert isinstance(values, dict)
    assert list(values) == FIELDS
    return values


@pytest.mark.parametrize("device", ["card A", "card B", ""])
def test_anchors_of_the_run_override_stored_ones(score: Any, device: str) -> None:
    score_now = result(score("6", "--json", PACE="3", DEVICE=device)[1])
    assert (score_now["status"], score_now["raw"], score_now["reward"]) == ("valid", 18.0, 0.5)
    assert score_now["details"]["anchors"] == {"starting": 30.0, "reference": 6.0, "source": "measured in this run"}


@pytest.mark.parametrize(
    ("anchors", "text"),
    [
        ("nan 2", "the starting score measured in this run must be a finite number, got nan"),
        ("10 -inf", "the reference score measured in this run must be a finite number, got -inf"),
        ("3 3", "the reference is not better than the baseline (measured in this run): 3.0 and 3.0"),
        ("3 4", "the reference is not better than the baseline (measured in this run): 4.0 and 3.0"),
        ("", "measures its anchors in every run (in_run), and the scorer returned none"),
    ],
)
@pytest.mark.parametrize("number", ["6", "nan"])
def test_invalid_anchors_of_a_run_are_an_internal_error(score: Any, anchors: str, text: str, number: str) -> None:
    status, output = score(number, "--json", ANCHORS=anchors)
    failed = result(output)
    assert (status, failed["status"], failed["raw"], failed["reward"]) == (1, "error", None, None)
    assert text in failed["message"]


def test_output_names_the_anchors_used(score: Any) -> None:
    assert "raw 18 seconds, reward 0.5000 (anchors measured in this run)\n" in score("6", PACE="3")[1]


def test_validation_uses_the_profiles_expectations_and_lists_skipped_cheats(paced: Path) -> None:
    note = "skipped for profile cpu: cheats/elsewhere"
    done = run_command("validate", paced, "--repeats", "1", "--json", PACE="7")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)["reports"][0]
    assert report["skipped"] == ["cheats/elsewhere"]
    assert report["note"] == f"anchors measured in the run; {note}"
    assert done.stderr.splitlines().count(f"paced: {note}") == 1
    rewards = {row["variant"]: row["scores"][0]["reward"] for row in report["rows"]}
    assert rewards == {"baseline": 0.0, "reference": 1.0, "cheats/letters": None, "cheats/slow": -0.125}
    manifest = paced / "cheats" / "slow" / "cheat.toml"
    manifest.write_text(manifest.read_text().replace('on.cpu = {expect = "no_better"}', ""))
    failed = run_command("validate", paced, "--repeats", "1", "--only", "slow", "--only", "letters")
    assert failed.returncode == 1
    assert "paced, profile cpu (anchors measured in the run)\n" in failed.stdout
    assert [line.split()[0] for line in failed.stdout.splitlines() if "FAILED" in line] == ["cheats/slow"]


def test_calibration_replaces_this_device_and_keeps_the_others(paced: Path) -> None:
    for device, pace, repeats in (("card A", "1", "1"), ("card B", "5", "2")):
        done = run_command("calibrate", paced, "--repeats", repeats, "--profile", "cpu", DEVICE=device, PACE=pace)
        assert done.returncode == 0, done.stderr
    devices = open_task(paced).manifest.profiles["cpu"].devices
    assert [(entry.source.hardware, entry.starting, entry.reference) for entry in devices] == [
        ("card A", 10.0, 2.0), ("card B", 50.0, 10.0),
    ]  # fmt: skip
    assert [entry.source.repeats for entry in devices] == [1, 2]
    assert (paced / "task.toml").read_text() == MANIFEST


def test_calibration_needs_the_name_of_the_device(paced: Path) -> None:
    before = (paced / "anchors.toml").read_bytes()
    done = run_command("calibrate", paced, "--repeats", "1", DEVICE="")
    assert done.returncode == 1
    assert "details['hardware'] must be the same device in all scores; found: none" in done.stderr
    assert (paced / "anchors.toml").read_bytes() == before
