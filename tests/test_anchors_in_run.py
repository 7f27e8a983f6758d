"""A task whose scorer measures baseline and reference beside every submission, from its scorer to its calibration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from pathlib import Path

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
{devices}
[cheats.letters]
description = "words"
expect = "invalid"
reason = "no number"

[cheats.elsewhere]
description = "makes a graphics card lie"
expect = "invalid"
profiles = ["gpu", "paper"]

[cheats.slow]
description = "pays on a card only"
expect = "invalid"
on.cpu = {{expect = "no_better"}}
"""
DEVICE = """
[[profiles.cpu.devices]]
starting = 20.0
reference = 4.0
source = {kind = "measured", where = "x", hardware = "card A", date = 2026-01-31, repeats = 1, \
spread = {starting = 0, reference = 0}, versions = {}}
"""
SCORER = """
import os, sys
from pathlib import Path
from re_bench.errors import InvalidSubmissionError
from re_bench.scoring.score import Measured, RunAnchors, main

pace, device = float(os.environ.get("PACE", 1)), os.environ.get("DEVICE", "card A")
here = Path(__file__).parent

def measured(directory):
    try:
        return pace * float((directory / "number").read_text())
    except ValueError:
        raise InvalidSubmissionError("that is no number")

def measure(job):
    if "LATE" not in os.environ:
        job.on_device(device)
    print("measuring", file=sys.stderr)
    given = os.environ.get("ANCHORS", f"{measured(here / 'baseline')} {measured(here / 'reference')}")
    anchors = RunAnchors(*map(float, given.split())) if given else None
    return Measured(measured(job.submission), "fine", {"hardware": device} if device else {}, anchors)

main(measure, here)
"""
OWN_DETAILS = ("anchors", "stored_anchors", "stored_reward")
FIELDS = ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]


@pytest.fixture
def paced(tmp_path: Path) -> Path:
    """Return the task's directory, with anchors stored for one device."""
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
    (task / "task.toml").write_text(MANIFEST.format(devices=DEVICE))
    (task / "score.py").write_text(SCORER)
    return task


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | environment)


def score(task: Path, number: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    submission = task.parent / "submission"
    submission.mkdir(exist_ok=True)
    (submission / "number").write_text(number)
    return run(task / "score.py", "--solution", submission, *arguments, **environment)


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    assert list(found) == FIELDS
    return found


def test_the_reward_comes_from_the_run_and_the_stored_anchors_stand_beside(paced: Path) -> None:
    found = result(score(paced, "6", "--json", PACE="3"))
    assert (found["status"], found["raw"], found["reward"]) == ("valid", 18.0, 0.5)
    assert {key: found["details"][key] for key in OWN_DETAILS} == {
        "anchors": {"starting": 30.0, "reference": 6.0, "source": "measured in this run"},
        "stored_anchors": {"starting": 20.0, "reference": 4.0, "date": "2026-01-31"},
        "stored_reward": 0.125,
    }


@pytest.mark.parametrize("device", ["card B", ""])
def test_a_device_that_is_not_stored_has_nothing_beside(paced: Path, device: str) -> None:
    done = score(paced, "6", "--json", DEVICE=device)
    details = result(done)["details"]
    assert (details["stored_anchors"], details["stored_reward"], result(done)["reward"]) == (None, None, 0.5)


def test_stored_anchors_of_this_device_give_the_reward_when_asked_for(paced: Path) -> None:
    done = score(paced, "6", "--json", "--anchors", "stored", PACE="3")
    found = result(done)
    assert found["reward"] == found["details"]["stored_reward"] == 0.125
    assert found["details"]["anchors"] == {
        "starting": 20.0, "reference": 4.0, "source": "stored: card A, 2026-01-31",
    }  # fmt: skip
    assert result(score(paced, "6", "--json", "--anchors", "stored", ANCHORS=""))["reward"] == 0.875


@pytest.mark.parametrize("when", ["before", "after"])
def test_stored_anchors_of_another_device_are_refused_in_one_line(paced: Path, when: str) -> None:
    environment = {"LATE": "1"} if when == "after" else {}
    done = score(paced, "6", "--json", "--anchors", "stored", DEVICE="card B", **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.removeprefix("measuring\n" if when == "after" else "") == (
        "score.py: profile cpu has no stored anchors for 'card B'; it has them for: card A; "
        "run nox -s calibrate-paced -- --profile cpu, or leave out --anchors stored\n"
    )


def test_where_nothing_is_stored_yet_it_says_so(paced: Path) -> None:
    (paced / "task.toml").write_text(MANIFEST.format(devices=""))
    done = score(paced, "6", "--anchors", "stored")
    assert done.returncode == 2
    assert "no stored anchors for 'card A'; it has them for: no device yet; run nox" in done.stderr


@pytest.mark.parametrize(
    ("anchors", "text"),
    [
        ("nan 2", "the starting score measured in this run must be a finite number, got nan"),
        ("10 -inf", "the reference score measured in this run must be a finite number, got -inf"),
        ("3 3", "the reference came out no better than the baseline in this run: 3.0 and 3.0"),
        ("3 4", "the reference came out no better than the baseline in this run: 4.0 and 3.0"),
        ("", "measures its anchors in every run (in_run), and the scorer returned none"),
    ],
)
@pytest.mark.parametrize("number", ["6", "nan"])
def test_unusable_anchors_of_a_run_are_our_fault(paced: Path, anchors: str, text: str, number: str) -> None:
    done = score(paced, number, "--json", ANCHORS=anchors)
    found = result(done)
    assert (done.returncode, found["status"], found["raw"], found["reward"]) == (1, "error", None, None)
    assert text in found["message"]


def test_people_are_told_which_anchors_were_used(paced: Path) -> None:
    said = "reward 0.5000 (anchors measured in this run; {})"
    assert said.format("0.1250 by stored ones") in score(paced, "6", PACE="3").stdout
    assert said.format("this device has no stored ones") in score(paced, "6", DEVICE="card B").stdout
    by_stored = score(paced, "6", "--anchors", "stored").stdout
    assert "reward 0.8750 (anchors stored: card A, 2026-01-31; 0.8750 by stored ones)" in by_stored


def test_validation_uses_the_expectations_of_the_profile_and_says_what_it_left_out(paced: Path) -> None:
    note = "not run, as they make no sense in profile cpu: cheats/elsewhere"
    done = run("-m", "re_bench.cli", "validate", paced, "--repeats", "1", "--json", PACE="7")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)["reports"][0]
    assert report["skipped"] == ["cheats/elsewhere"]
    assert report["note"] == f"anchors measured in the run; {note}"
    assert done.stderr.splitlines().count(f"paced: {note}") == 1
    rewards = {row["variant"]: row["scores"][0]["reward"] for row in report["rows"]}
    assert rewards == {"baseline": 0.0, "reference": 1.0, "cheats/letters": None, "cheats/slow": -0.125}
    manifest = paced / "task.toml"
    manifest.write_text(manifest.read_text().replace('on.cpu = {expect = "no_better"}', ""))
    failed = run("-m", "re_bench.cli", "validate", paced, "--repeats", "1")
    assert failed.returncode == 1
    assert f"paced, profile cpu (anchors measured in the run; {note})\n" in failed.stdout
    assert [line.split()[0] for line in failed.stdout.splitlines() if "FAILED" in line] == ["cheats/slow"]


def test_calibration_replaces_this_device_and_keeps_the_others(paced: Path) -> None:
    for device, pace in (("card B", "3"), ("card A", "1"), ("card B", "5")):
        done = run(
            "-m", "re_bench.cli", "calibrate", paced, "--repeats", "2", "--profile", "cpu", DEVICE=device, PACE=pace
        )
        assert done.returncode == 0, done.stderr
    devices = open_task(paced).manifest.profiles["cpu"].devices
    assert [(entry.source.hardware, entry.starting, entry.reference) for entry in devices] == [
        ("card A", 10.0, 2.0), ("card B", 50.0, 10.0),
    ]  # fmt: skip
    assert {entry.source.repeats for entry in devices} == {2}
    stored = result(score(paced, "6", "--json", "--anchors", "stored", DEVICE="card B", PACE="5"))
    assert (stored["reward"], stored["details"]["stored_reward"]) == (0.5, 0.5)


def test_calibration_needs_the_name_of_the_device(paced: Path) -> None:
    before = (paced / "task.toml").read_bytes()
    done = run("-m", "re_bench.cli", "calibrate", paced, "--repeats", "1", DEVICE="")
    assert done.returncode == 1
    assert "must name the same device in details['hardware'] every time; it named none" in done.stderr
    assert (paced / "task.toml").read_bytes() == before
