"""A validation shows what runs in a terminal, and lines everywhere; two of them can be compared."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from terminal_session import in_terminal, plain

from re_bench.cli.run_tables import validation_table
from re_bench.runs.validation import Report, Row
from re_bench.scoring.score import Score

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


@pytest.fixture
def task(made_up: Task, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return the example task."""
    del backend  # there is one
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


def test_a_terminal_shows_what_runs_below_the_lines(loud: Task, tmp_path: Path) -> None:
    (tmp_path / "bug").mkdir()
    (tmp_path / "bug" / "number").write_text("bug")
    status, output, shown = in_terminal(command(loud, "--jobs", "1", "--solution", str(tmp_path / "bug")))
    frames = plain(shown)
    assert status == 1, frames  # an internal error
    lines = [" ".join(line.split()) for line in frames.splitlines()]
    assert any(line.startswith("made_up, profile cpu: 2 of 4 scorings 0:0") for line in lines), frames
    assert any(re.fullmatch(r"baseline 0:0\d", line) for line in lines)
    assert any("s] made_up: baseline: valid 0.0000" in line for line in lines)
    assert "step 3 \\x1b[2J of 9" in frames
    assert "\x1b[2J" not in shown
    assert "KeyError: 'ours'" in frames
    assert "\x1b" not in output
    assert "error" in output


def test_an_interrupt_keeps_the_lines_of_what_was_scored(task: Task, change: Change, tmp_path: Path) -> None:
    stop = "    import os, signal, time\n    if job.submission.joinpath('number').read_text() == 'stop': "
    stop += "os.kill(os.getppid(), signal.SIGINT); time.sleep(60)\n    try:\n"
    (tmp_path / "stop").mkdir()
    (tmp_path / "stop" / "number").write_text("stop")
    stopping = change(task, "score.py", "    try:\n", stop)
    status, _output, shown = in_terminal(command(stopping, "--jobs", "1", "--solution", str(tmp_path / "stop")))
    assert status == 130, shown
    assert "s] made_up: reference: valid 1.0000" in plain(shown)


def test_a_dumb_terminal_has_lines(task: Task) -> None:
    status, _output, shown = in_terminal(command(task), {"TERM": "dumb"})
    assert status == 0, shown
    assert "\x1b" not in shown
    assert "s] made_up: reference: valid 1.0000" in shown


def test_two_validations_are_compared(task: Task, change: Change, tmp_path: Path) -> None:
    change(task, "task.toml", "unit = ", "resolution = 0.5\nunit = ")
    before, after, other = (tmp_path / f"{name}.json" for name in ("before", "after", "other"))
    before.write_text(validated(task, "--json").stdout)
    text = before.read_text().replace('"raw": 10.0', '"raw": 10.4').replace("that is no number", "that is no number 7")
    after.write_text(text)
    assert compared(task, before, before) == (0, "no differences\n")
    assert compared(task, before, after)[0] == 1
    after.write_text(text.replace("number 7", "number"))
    assert compared(task, before, after) == (0, "no differences\n")
    report = json.loads(text)
    rows = {row["variant"]: row for row in report["reports"][0]["rows"]}
    rows["baseline"]["scores"][0].update(raw=7.0)
    rows["reference"]["scores"][0].update(status="invalid", raw=None)
    rows["cheats/words"]["scores"][0].update(message="another reason")
    report["reports"][0]["rows"].append({"variant": "cheats/new", "scores": []})
    other.write_text(json.dumps(report))
    status, table = compared(task, before, other)
    assert status == 1
    assert [line.split()[1:3] for line in table.splitlines()[2:]] == [
        ["baseline", "raw"], ["reference", "status"], ["cheats/words", "reason"], ["cheats/new", "presence"],
    ]  # fmt: skip
    other.write_text("[1]")
    assert compared(task, before, other)[0] == 2


def compared(task: Task, before: Path, after: Path) -> tuple[int, str]:
    words = [sys.executable, "-m", "re_bench.cli", "compare", str(before), str(after)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=task.directory.parent)
    return done.returncode, done.stdout
