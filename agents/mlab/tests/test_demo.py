"""The README's first example as it is typed, and the trace as people read it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlab_agent.cli import main
from mlab_agent.demo import reply_to
from mlab_agent.fake_server import FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_readmes_first_example(tmp_path: Path) -> None:
    block = re.search(r"<!-- ci: demo -->\n```bash\n(.*?)```", README.read_text(), re.DOTALL)
    assert block
    lines = [line for line in block[1].splitlines() if not line.startswith("pip ")]
    assert lines[0] == "mlab-agent demo"
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in lines:
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "mlab-demo/workspace/submission.txt").read_text() == "0.0104"
    assert "=== Step 8" in done.stdout


def test_the_demo_with_a_model_that_has_a_key(tmp_path: Path) -> None:
    with FakeServer(reply_to) as server:
        command = [sys.executable, "-m", "mlab_agent", "demo", "--model", "real", "--base-url", server.url]
        env = {**os.environ, "OPENAI_API_KEY": "sk-test-demo"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0.0104\n"
    assert set(server.authorizations) == {"Bearer sk-test-demo"}
    assert server.requests[0]["model"] == "real"


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "missing"], "cannot be read"),
        (["resume", "missing"], "cannot be read"),
        (["--workdir", "missing", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "missing is no directory"),
        (["--workdir", ".", "--model", "x", "--base-url", "http://127.0.0.1:9/v1"], "no task"),
        (["--workdir", ".", "--task-file", "missing", "--model", "x", "--base-url", "http://x/v1"], "cannot be read"),
        (["--workdir", ".", "--model", "x", "--max-steps", "0"], "max_steps"),
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


@pytest.mark.parametrize(
    "arguments", [["--model", "x"], ["--workdir", "."], ["--workdir", ".", "--max-time", "soon"], []]
)
def test_the_command_line_is_checked(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
