"""A validation is a live table in a terminal, lines elsewhere, and says at its end what has changed since the last."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from terminal_session import in_terminal, plain

from re_bench.cli.run_tables import validation_table
from re_bench.data.cache import state_directory
from re_bench.runs.validation import Report, Row
from re_bench.runs.validation_history import PastSolution, ValidationRecord, changes, keep, last_validation
from re_bench.scoring.score import Score
from re_bench.task.manifest import Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import Task

    Change = Callable[[Task, str, str, str], Task]

SLOW_AND_LOUD = """    import sys, time
    print("step 3 \\x1b[2J of 9", file=sys.stderr, flush=True)
    time.sleep(0.3)
    if job.submission.joinpath("number").read_text() == "bug": raise KeyError("ours")
    try:
"""


def command(task: Task, *options: str) -> list[str]:
    return [sys.executable, "-m", "re_bench.cli", "validate", str(task.directory), "--profile", "cpu", *options]


def validated(task: Task, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(task, *options), capture_output=True, text=True, check=False)


def record_of(task: Task) -> Path:
    return state_directory() / "validations" / task.name / "cpu" / "validation.json"


@pytest.fixture
def task(made_up: Task, backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return the example task, with an empty directory for state."""
    del backend  # there is one
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return made_up


@pytest.fixture
def loud(task: Task, change: Change) -> Task:
    """Return the task with a scorer that takes a third of a second and writes to its stderr."""
    return change(task, "score.py", "    try:\n", SLOW_AND_LOUD)


def test_a_line_of_the_last_table_is_cut_where_it_would_wrap_unless_something_is_wrong() -> None:
    score = Score("made_up", "cpu", "invalid", None, None, "why")
    rows = [Row(name, [score], holds, "a reason " * 20) for name, holds in (("cheats/a", True), ("cheats/b", False))]
    report = Report("made_up", "cpu", rows)
    whole = validation_table(report).splitlines()
    cut = validation_table(report, 100).splitlines()
    assert cut == [*whole[:3], f"{whole[3][:99]}…", whole[4]]


def test_a_terminal_shows_one_table_of_what_runs_waits_and_is_done(loud: Task, tmp_path: Path) -> None:
    (tmp_path / "bug").mkdir()
    (tmp_path / "bug" / "number").write_text("bug")
    status, output, shown = in_terminal(command(loud, "--jobs", "1", "--solution", str(tmp_path / "bug")))
    frames = plain(shown)
    assert status == 1, frames  # an error of ours
    lines = [" ".join(line.split()) for line in frames.splitlines()]
    reference = [line for line in lines if " reference " in line]
    states = list(dict.fromkeys(line.split()[0] for line in reference))
    assert [state for state in states if state != "waiting"] == ["running", "ok"]
    assert any(line.startswith("waiting cheats/words 0/1 - -") for line in lines)
    assert any(
        line.startswith("ok baseline 1/1 ") and line.endswith("reward 0.0000: reward 0 +- 0.05") for line in lines
    )
    first = next(index for index, line in enumerate(lines) if line.startswith("running baseline"))
    assert lines[first - 2].startswith("state solution scored elapsed expected verdict")  # what runs is on top
    assert any("made_up, profile cpu 2 of 4 solutions" in line for line in lines)
    assert "step 3 \\x1b[2J of 9" in frames
    assert "\x1b[2J" not in shown
    assert "KeyError: 'ours'" in frames[frames.rindex("verdict") :]  # below the table, as nothing else says it
    assert "\x1b" not in output
    assert "error" in output


def test_an_interrupt_leaves_the_table_as_it_was(task: Task, change: Change, tmp_path: Path) -> None:
    stop = "    import os, signal, time\n    if job.submission.joinpath('number').read_text() == 'stop': "
    stop += "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)\n    try:\n"
    (tmp_path / "stop").mkdir()
    (tmp_path / "stop" / "number").write_text("stop")
    stopping = change(task, "score.py", "    try:\n", stop)
    status, _output, shown = in_terminal(command(stopping, "--jobs", "1", "--solution", str(tmp_path / "stop")))
    left = plain(shown[shown.rindex("\x1b[2K") :])  # what was there before is erased
    assert status == 130, shown
    assert re.search(r"ok +reference +1/1 .* reward 1\.0000", left), left
    assert re.search(r"(running|waiting) +--solution +0/1", left), left


def test_what_has_changed_since_the_last_validation_is_told(loud: Task) -> None:
    first = validated(loud, "--json", "--jobs", "2")
    assert first.returncode == 0, first.stderr
    assert "\x1b" not in first.stderr.replace("step 3 \x1b[2J of 9", "")  # which the scorer writes
    assert "s] made_up: reference: valid 1.0000" in first.stderr
    assert "s] made_up: cheats/words: invalid - that is no number" in first.stderr
    (history,) = json.loads(first.stdout)["history"]
    assert (history["task"], history["previous"], history["changes"]) == ("made_up", None, [])
    path = record_of(loud)
    record = json.loads(path.read_text())
    assert all(one["seconds"] >= 0.3 for one in record["solutions"].values())
    assert path.stat().st_mode & 0o77 == 0
    record["solutions"]["baseline"]["seconds"] = 100
    path.write_text(json.dumps(record))
    (loud.directory / "reference" / "train.py").write_text("open('number', 'w').write('8')")
    status, output, shown = in_terminal(command(loud, "--jobs", "2"), {"NO_COLOR": "1"})
    assert status == 1
    assert "1:40" in plain(shown)  # what is expected of the baseline
    assert "\x1b[3" not in shown  # no colour
    title, *told = output[output.index("since the last validation on this machine:") :].splitlines()[1:]
    assert re.match(r"  made_up, profile cpu: took \d+:\d\d, \d+:\d\d on 20", title)
    assert told.pop(0).startswith("    baseline: time 100.0 s -> ")
    failed = ["    reference: verdict ok -> FAILED", "    reference: reward 1.0000 -> 0.8000"]
    assert [line for line in told if ": time " not in line] == failed


def test_a_dumb_terminal_has_lines_and_records_need_a_place(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(task.directory / "task.toml"))
    status, _output, shown = in_terminal(command(task), {"TERM": "dumb"})
    assert status == 0, shown
    assert "\x1b" not in shown
    assert "s] made_up: reference: valid 1.0000" in shown
    assert shown.count("not kept for the next validation") == 1
    assert "Traceback" not in shown


RECORD = ValidationRecord(
    task="made_up",
    profile="cpu",
    time="2026-01-01T00:00:00+00:00",
    seconds=1.0,
    conditions={"numpy": "2.0"},
    digest="",
    solutions={
        "reference": PastSolution(status="valid", reward=1.0, spread=None, holds=True, seconds=1.0),
        "cheats/a": PastSolution(status="valid", reward=-0.5, spread=0.1, holds=True, seconds=10.0),
    },
)


@pytest.mark.parametrize(
    ("name", "now", "expected"),
    [
        ("reference", {"reward": 1.04}, []),  # within the tolerance
        ("reference", {"reward": 1.06}, [("reference", "reward", 1.0, 1.06)]),
        ("cheats/a", {"reward": -0.1, "spread": 0.2}, []),  # 0.4 is less than two standard deviations
        ("cheats/a", {"reward": 0.0, "spread": 0.1}, [("cheats/a", "reward", -0.5, 0.0)]),
        ("cheats/a", {"status": "invalid", "reward": None}, [("cheats/a", "status", "valid", "invalid")]),
        ("cheats/a", {"holds": False}, [("cheats/a", "verdict", "ok", "FAILED")]),
        ("cheats/a", {"seconds": 14.9}, []),
        ("cheats/a", {"seconds": 15.1}, [("cheats/a", "seconds", 10.0, 15.1)]),
        ("cheats/a", {"seconds": 6.0}, [("cheats/a", "seconds", 10.0, 6.0)]),
        ("reference", {"seconds": 2.9}, []),  # a second more or less
    ],
)
def test_a_difference_counts_if_chance_does_not_explain_it(
    name: str, now: dict[str, Any], expected: list[tuple[object, ...]]
) -> None:
    other = RECORD.model_copy(
        update={"solutions": RECORD.solutions | {name: RECORD.solutions[name].model_copy(update=now)}}
    )
    found = [(one.solution, one.what, one.before, one.after) for one in changes(RECORD, other, Tolerance())]
    assert found == expected


def test_new_and_vanished_solutions_and_other_versions_are_told() -> None:
    fewer = {"reference": RECORD.solutions["reference"]}
    other = RECORD.model_copy(update={"solutions": fewer, "conditions": {"numpy": "2.1"}})
    found = [(one.solution, one.what) for one in changes(RECORD, other, Tolerance())]
    assert found == [("", "numpy"), ("cheats/a", "gone")]
    assert [(one.solution, one.what) for one in changes(other, RECORD, Tolerance())][1:] == [("cheats/a", "new")]


@pytest.mark.parametrize(
    "content", [b"\xff{", b'{"v": 2}', b"[" * 100_000, None], ids=["bytes", "v2", "deep", "directory"]
)
def test_a_broken_record_is_one_line_and_replaced(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert last_validation("made_up", "cpu") is None
    keep(RECORD)
    assert last_validation("made_up", "cpu") == RECORD
    path = tmp_path / "re-bench" / "validations" / "made_up" / "cpu" / "validation.json"
    path.unlink()
    path.write_bytes(content) if content else path.mkdir()
    assert capsys.readouterr().err == ""
    assert last_validation("made_up", "cpu") is None
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(path) in told
    if content:
        keep(RECORD)
        assert last_validation("made_up", "cpu") == RECORD
