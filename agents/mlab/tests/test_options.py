"""Options of the command: the output of scripts as they run, the interpreter, lists of read-only files, and others."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

import mlab_agent
from mlab_agent.cli import main
from mlab_agent.options import changed_settings, new_settings, resume_parser, run_parser
from mlab_agent.settings import SettingsError
from mlab_agent.workspaces.base import read_patterns
from mlab_agent.workspaces.files import WorkspaceError
from mlab_agent.workspaces.local import LocalWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import Agents

SLOW = """\
import sys, time
print("first \\x1b[31mred\\x1b[0m \\x07", flush=True)
print("to stderr", file=sys.stderr, flush=True)
while not __import__("os").path.exists("go"):
    time.sleep(0.01)
sys.stdout.write("last, without an end")
"""


def test_the_output_of_a_script_is_shown_while_it_runs(agents: Agents, say: Callable[..., str]) -> None:
    (agents.workspace / "slow.py").write_text(SLOW)
    agents.model.replies = [say("Execute Script", {"filename": "slow.py"}), say("Final Answer", {"final_answer": "x"})]
    with agents.start() as process:
        assert process.stderr is not None
        lines: list[str] = []
        while len(lines) < 2:
            line = process.stderr.readline()
            assert line, "it ended without a word"
            if line.startswith("  "):
                lines.append(line)
        assert sorted(lines) == ["  stderr: to stderr\n", "  stdout: first red \N{REPLACEMENT CHARACTER}\n"]
        assert agents.observations() == []  # it still runs
        (agents.workspace / "go").touch()
        assert "  stdout: last, without an end\n" in process.communicate(timeout=60)[1]
    assert "first \x1b[31mred" in agents.observations()[0]  # the model and the trace have it as it is


def test_the_output_of_a_script_can_be_left_out(agents: Agents, say: Callable[..., str]) -> None:
    (agents.workspace / "go").touch()
    (agents.workspace / "slow.py").write_text(SLOW)
    agents.model.replies = [say("Execute Script", {"filename": "slow.py"}), say("Final Answer", {"final_answer": "x"})]
    done = agents.finish("--no-live-output")
    assert "red" not in done.stderr
    assert "red" in agents.observations()[0]


def test_the_interpreter_of_scripts(agents: Agents, say: Callable[..., str]) -> None:
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


def test_the_list_of_a_task_has_read_only_files(agents: Agents, say: Callable[..., str]) -> None:
    scripts = agents.workspace / "scripts"
    scripts.mkdir()
    (scripts / "read_only_files.txt").write_text("./train.py\n./*.csv\n\nscripts/*\n")
    (agents.workspace / "data.csv").write_text("1\n")
    (agents.workspace / "out").mkdir()
    (agents.workspace / "spoil.sh").write_text("echo 2 > data.csv; echo 2 > out/data.csv; true\n")
    write = ("Write File", "Write File", "Write File", "Write File")
    names = ("train.py", "scripts/read_only_files.txt", "out/train.py", "out/data.csv")
    agents.model.replies = [
        *(say(action, {"filename": name, "content": "x"}) for action, name in zip(write, names, strict=True)),
        say("Execute Script", {"filename": "spoil.sh"}),
        say("Final Answer", {"final_answer": "x"}),
    ]
    assert agents.finish().returncode == 0
    observations = agents.observations()
    assert ["is read-only" in text for text in observations[:4]] == [True, True, False, False]
    assert (agents.workspace / "data.csv").read_text() == "1\n"
    assert (agents.workspace / "out" / "data.csv").read_text() == "2\n"
    beside_the_task = agents.top / "read_only_files.txt"
    beside_the_task.write_text("other\n")
    named = agents.top / "named.txt"
    named.write_text("out\n")
    command = ["--workdir", str(agents.workspace), "--task-file", str(agents.top / "task.txt"), "--model", "m"]

    def patterns(*options: str) -> tuple[str, ...]:
        return new_settings(run_parser().parse_args([*command, *options])).read_only

    assert patterns("--read-only", "mine") == ("mine", "other")
    assert patterns("--read-only-files", str(named), "--read-only", "mine") == ("mine", "out")
    with pytest.raises(SettingsError, match=r"missing\.txt cannot be read"):
        patterns("--read-only-files", "missing.txt")
    assert read_patterns(named) == ("out",)


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
def test_patterns_for_the_top_of_the_workspace(tmp_path: Path, pattern: str, protected: str, free: str) -> None:
    (tmp_path / "ws").mkdir()
    workspace = LocalWorkspace(tmp_path / "ws", read_only=[pattern], state=tmp_path / "run")
    workspace.write(free, "x")
    with pytest.raises(WorkspaceError, match="is read-only"):
        workspace.write(protected, "x")
    workspace.close()


def test_a_remark_when_the_same_is_done_again(agents: Agents, say: Callable[..., str]) -> None:
    read, other = say("Read File", {"filename": "train.py"}), say("Read File", {"filename": "none"})
    agents.model.replies = [read, read, read, other, read, read, read, say("Final Answer", {"final_answer": "x"})]
    agents.kill_when(lambda: len(agents.observations()) == 2)
    agents.model.replies_given = len(agents.events("reply"))
    assert agents.finish(resume=True).returncode == 0
    remarks = ["carried out 3 times in a row" in text for text in agents.observations()]
    assert remarks == [False, False, True, False, False, False, True, False]
    agents.model.replies_given = 0
    assert agents.finish("--from-step", "3", "--repeat-remark", "0", resume=True).returncode == 0
    assert not any("in a row" in text for text in agents.observations()[8:])


def test_a_key_goes_to_no_other_server(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["--workdir", ".", "--model", "m", "--base-url", "http://a/v1", "--key-variable", "A"]
    new += ["--fast-model", "f", "--fast-base-url", "http://b/v1", "--fast-key-variable", "B"]
    new += ["--edit-model", "e", "--edit-key-variable", "E"]
    settings = new_settings(run_parser().parse_args(new))
    assert settings.key_variables == ["A", "B", "E"]

    def resumed(*options: str) -> list[str]:
        return changed_settings(settings, resume_parser().parse_args(["run", *options])).key_variables

    assert resumed("--base-url", "http://a/v1", "--fast-base-url", "http://b/v1") == ["A", "B", "E"]
    assert resumed("--base-url", "http://c/v1") == ["B"]
    assert resumed("--fast-base-url", "http://c/v1") == ["A", "E"]
    assert resumed("--base-url", "http://c/v1", "--key-variable", "C") == ["C", "B"]
    assert resumed("--fast-base-url", "http://c/v1", "--fast-key-variable", "C") == ["A", "C", "E"]
    for parser in (run_parser(), resume_parser()):  # an abbreviated option would leave the key in the environment
        with pytest.raises(SystemExit):
            parser.parse_args(["run", "--key-v", "A"])
    assert "--key-v" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"mlab-agent {mlab_agent.__version__}\n"


def test_a_token_that_is_not_there_is_a_mistake(agents: Agents) -> None:
    command = ["--ors", "http://127.0.0.1:9", "--task", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    began = time.monotonic()
    assert main([*command, "--token-variable", "UNSET_TOKEN", "--run", str(agents.run)]) == 2
    assert time.monotonic() - began < 60  # it does not wait for the server
    assert not agents.run.exists()
