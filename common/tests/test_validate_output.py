"""Test the output of validations, and comparing two of them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from terminal_session import in_terminal, plain

from re_bench.testing import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.sandbox.spec import Backend
    from re_bench.task.discovery import TaskFolder

    Change = Callable[[TaskFolder, str, str, str], TaskFolder]

pytestmark = pytest.mark.integration


@pytest.fixture
def task(made_up: TaskFolder, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> TaskFolder:
    """Return the example task."""
    del backend
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return made_up


def test_an_interrupt_in_a_terminal_keeps_the_lines_and_no_output_moves_the_cursor(
    task: TaskFolder, change: Change, tmp_path: Path
) -> None:
    stop = """\
        import os, signal, sys, time
        print("step \\x1b[2J", file=sys.stderr, flush=True)
        if job.submission.joinpath("number").read_text() == "stop":
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(60)
        try:
"""
    (tmp_path / "stop").mkdir()
    (tmp_path / "stop" / "number").write_text("stop")
    stopping = change(task, "score.py", "        try:\n", stop)
    command = [sys.executable, "-m", "re_bench.cli", "validate", str(stopping.directory), "--profile", "cpu"]
    status, _output, shown = in_terminal([*command, "--jobs", "1", "--solution", str(tmp_path / "stop")])
    assert status == 130, shown
    assert "s] made_up: reference: valid 1.0000" in plain(shown)
    assert "step \\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_two_validations_are_compared(task: TaskFolder, change: Change, tmp_path: Path) -> None:
    change(task, "task.toml", "unit = ", "resolution = 0.5\nunit = ")
    before, after, other = (tmp_path / f"{name}.json" for name in ("before", "after", "other"))
    before.write_text(run_command("validate", task.directory, "--profile", "cpu", "--json").stdout)
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


def compared(task: TaskFolder, before: Path, after: Path) -> tuple[int, str]:
    done = run_command("compare", before, after, cwd=task.directory.parent)
    return done.returncode, done.stdout
