"""Options of the command: the output of scripts as they run, the interpreter, lists of read-only files, and others."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

import mlab_agent
from mlab_agent.cli import main
from mlab_agent.settings import (
    ChangeableSettings,
    ModelOptions,
    OtherModel,
    RunSettings,
    SettingsError,
    read_only_patterns,
)
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
    task_file = agents.top / "task.txt"
    beside_the_task = agents.top / "read_only_files.txt"
    beside_the_task.write_text("other\n")
    named = agents.top / "named.txt"
    named.write_text("out\n")
    assert read_only_patterns(None, task_file, str(agents.workspace)) == ("other",)
    assert read_only_patterns(named, task_file, str(agents.workspace)) == ("out",)
    with pytest.raises(SettingsError, match=r"missing\.txt cannot be read"):
        read_only_patterns(agents.top / "missing.txt", task_file, str(agents.workspace))


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
    fast = OtherModel(name="f", base_url="http://b/v1", key_variable="B")
    edit = OtherModel(name="e", key_variable="E")
    main_model = ModelOptions(name="m")
    settings = RunSettings(
        workdir=".", base_url="http://a/v1", key_variable="A", model=main_model, fast_model=fast, edit_model=edit
    ).checked()
    assert settings.key_variables == ["A", "B", "E"]

    def resumed(fast_model: OtherModel | None = None, **given: str) -> list[str]:
        changes = {**given, **({"fast_model": fast_model} if fast_model else {})}
        return settings.changed(ChangeableSettings.model_validate(changes)).key_variables

    assert resumed(OtherModel(base_url="http://b/v1"), base_url="http://a/v1") == ["A", "B", "E"]
    assert resumed(base_url="http://c/v1") == ["B"]
    assert resumed(OtherModel(base_url="http://c/v1")) == ["A", "E"]
    assert resumed(base_url="http://c/v1", key_variable="C") == ["C", "B"]
    assert resumed(OtherModel(base_url="http://c/v1", key_variable="C")) == ["A", "C", "E"]
    # an abbreviated option would leave the key in the environment
    for words in (["--workdir", ".", "--model", "m"], ["resume", "run"]):
        assert main([*words, "--key-v", "A"]) == 2
    assert "--key-v" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"mlab-agent {mlab_agent.__version__}\n"


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
        ([*LOCAL, "--fast-price", "2,3"], "need --fast-model NAME"),
        (["--model", "x"], "give either --workdir"),
        (["--workdir", "."], "give --model NAME"),
        ([], "give either --workdir"),
    ],
)
def test_wrong_uses_say_what_to_do(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_token_that_is_not_there_is_a_mistake(agents: Agents) -> None:
    command = ["--ors", "http://127.0.0.1:9", "--task", "x", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    began = time.monotonic()
    assert main([*command, "--token-variable", "UNSET_TOKEN", "--run", str(agents.run)]) == 2
    assert time.monotonic() - began < 60  # it does not wait for the server
    assert not agents.run.exists()
