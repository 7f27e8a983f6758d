"""Options of the command."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from mlab_agent.cli import main
from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration


def test_python_option(agents: Agents, say: Callable[..., str]) -> None:
    python = agents.top / "python"
    python.write_text(f'#!/bin/sh\necho "it is ours"\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (agents.workspace / "run.sh").write_text("echo a shell script\n")
    agents.model.replies = [
        say("Execute Script", {"filename": "train.py"}),
        say("Execute Script", {"filename": "run.sh"}),
        say("Read File", {"filename": "train.py"}),
    ]
    assert agents.finish("--python", "./python", "--max-steps", "2").returncode == 3
    assert "it is ours" in agents.observations()[0]
    assert "it is ours" not in agents.observations()[1]
    agents.model.replies = [say("Execute Script", {"filename": "train.py"}), say("Final Answer", {"final_answer": "x"})]
    agents.model.replies_given = 0
    assert agents.finish("--max-steps", "9", resume=True).returncode == 0  # the option is remembered
    assert "it is ours" in agents.observations()[2]
    done = agents.finish("--run", "other", "--python", "python9")
    assert done.returncode == 2
    assert "there is no program" in done.stderr


@pytest.mark.parametrize(
    ("pattern", "protected", "free"),
    [
        ("./a.txt", "a.txt", "b/a.txt"),
        ("a.txt", "b/a.txt", "b/a.txt2"),
        ("./b/*", "b/x", "c/b/x"),
        ("./b", "b/c/d", "c/b"),
        ("b/*", "b/c/d", "bc/d"),
    ],
)
def test_read_only_patterns(tmp_path: Path, pattern: str, protected: str, free: str) -> None:
    (tmp_path / "ws").mkdir()
    workspace = LocalWorkspace(tmp_path / "ws", read_only=[pattern], state=tmp_path / "run")
    workspace.write(free, "x")
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write(protected, "x")
    workspace.close()


def test_remark_after_repeated_action(agents: Agents, say: Callable[..., str]) -> None:
    read, other = say("Read File", {"filename": "train.py"}), say("Read File", {"filename": "none"})
    agents.model.replies = [read, read, read, other, read, read, read, say("Final Answer", {"final_answer": "x"})]
    agents.kill_when(lambda: len(agents.observations()) == 2)
    agents.model.replies_given = len(agents.events("reply"))
    assert agents.finish(resume=True).returncode == 0
    remarks = ["carried out 3 times in a row" in text for text in agents.observations()]
    assert remarks == [False, False, True, False, False, False, True, False]


def test_show(agents: Agents, say: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 5000
    agents.model.replies = [
        "nonsense",
        say("Write File", {"filename": "a", "content": long}),
        say("Understand File", {"filename": "a", "query": "letters"}),
        say("Final Answer", {"final_answer": "x"}),
    ]
    assert agents.finish("--price", "1,1").returncode == 0
    with agents.trace.open("ab") as trace:
        trace.write(b'{"kind": "torn')
    assert main(["show", str(agents.run)]) == 0
    shown = capsys.readouterr().out
    for part in ("Task:\nLower", "nonsense", "=== Step 3", "understand file", "The end", "Answer: x", "$0.0"):
        assert part in shown
    assert long not in shown
    assert main(["show", "--whole", str(agents.trace)]) == 0
    assert long in capsys.readouterr().out


LOCAL = ["--workdir", ".", "--model", "x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "missing"], "cannot be read"),
        (["resume", "missing"], "cannot be read"),
        (["--workdir", "missing", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "missing is no directory"),
        ([*LOCAL, "--base-url", "http://127.0.0.1:9/v1"], "no task"),
        ([*LOCAL, "--task-file", "missing", "--base-url", "http://x/v1"], "cannot be read"),
        ([*LOCAL, "--max-steps", "0"], "max_steps"),
        ([*LOCAL, "--max-time", "soon"], "'soon' is no time: write 5h"),
        ([*LOCAL, "--price", "2"], "'2' is no price"),
        ([*LOCAL, "--fast-price", "2,3"], "give --fast-model NAME"),
        (["--model", "x"], "give either --workdir"),
        (["--workdir", "."], "give --model NAME"),
        ([], "give either --workdir"),
    ],
)
def test_usage_errors(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_missing_token_variable_is_a_usage_error(agents: Agents) -> None:
    command = ["--ors", "http://127.0.0.1:9", "--task", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    began = time.monotonic()
    assert main([*command, "--token-variable", "UNSET_TOKEN", "--run", str(agents.run)]) == 2
    assert time.monotonic() - began < 60  # it does not wait for the server
    assert not agents.run.exists()
