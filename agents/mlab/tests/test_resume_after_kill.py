"""Resume after SIGKILL at any point."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

COUNT = """\
import pathlib
runs = pathlib.Path("runs.txt")
runs.write_text(runs.read_text() + "run\\n" if runs.exists() else "run\\n")
print(len(runs.read_text().split()), "runs")
"""


def replies(say: Callable[..., str]) -> list[Any]:
    return [
        say("Write File", {"filename": "count.py", "content": COUNT}),
        say("Execute Script", {"filename": "count.py"}),
        say("Append File", {"filename": "notes.txt", "content": "once\n"}),
        say("Understand File", {"filename": "count.py", "query": "what it counts"}),
        say("Execute Script", {"filename": "count.py"}),
        say("Undo Edit Script", {"filename": "notes.txt"}),
        say("Final Answer", {"final_answer": "done"}),
    ]


def script(agents: Agents, say: Callable[..., str], delay_s: float = 0.0) -> None:
    """Have the model's reply depend on what it is shown, so that it says the same after a resumption."""
    steps = replies(say)

    def answer(request: dict[str, Any]) -> Completion:
        done = sum(message["role"] == "assistant" for message in request["messages"])
        return Completion(steps[done], delay_s=delay_s)

    agents.model.replies = [answer]
    agents.model.serve = lambda _prompt: Completion("It counts runs.", delay_s=delay_s)


def outcome(agents: Agents) -> tuple[Any, ...]:
    files = {path.name: path.read_text() for path in agents.workspace.iterdir() if path.is_file()}
    seen = [text.split("[Budget")[0].split(", after")[0] for text in agents.observations()]
    return files, seen


@pytest.fixture
def expected() -> dict[str, str]:
    return {
        "count.py": COUNT,
        "runs.txt": "run\nrun\n",
        "submission.txt": "done",
    }


@pytest.mark.timeout(600)  # some fifteen starts of the agent
@pytest.mark.parametrize("apart", [5, pytest.param(2, marks=pytest.mark.slow)])
def test_repeated_kills(agents: Agents, say: Callable[..., str], expected: dict[str, str], apart: int) -> None:
    script(agents, say)
    resume, killed = False, 0
    for events in range(1, 200, apart):  # each time so many events later
        with agents.start(resume=resume) as process:
            while process.poll() is None and not (agents.trace.exists() and _lines(agents) >= events):
                time.sleep(0.003)
            process.kill()
            process.communicate()
        killed += process.returncode == -9
        resume = bool(agents.events())
        if agents.events("end"):
            break
    else:
        pytest.fail("it did not end")
    assert killed >= 5
    files, seen = outcome(agents)
    assert {name: files[name] for name in expected} == expected
    assert "notes.txt" not in files
    assert len(seen) == 7
    assert [event["elapsed"] for event in agents.events()] == sorted(event["elapsed"] for event in agents.events())


def test_kill_after_submission(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Final Answer", {"final_answer": "x"})]
    assert agents.finish().returncode == 0
    whole = agents.trace.read_bytes().splitlines(keepends=True)
    agents.trace.write_bytes(b"".join(whole[:-1]))  # as if the kill had come before the last event
    done = agents.finish(resume=True)
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert len(agents.server.requests) == 1


def test_kill_during_a_script(agents: Agents, say: Callable[..., str]) -> None:
    slow = "import pathlib, sys, time\npathlib.Path('half').touch()\ntime.sleep(float(sys.argv[1]))\nprint('whole')\n"
    (agents.workspace / "slow.py").write_text(slow)
    (agents.top / "wait").write_text("600")
    (agents.workspace / "run.sh").write_text("python3 slow.py $(cat ../wait)\n")
    agents.model.replies = [say("Execute Script", {"filename": "run.sh"}), say("Final Answer", {"final_answer": "x"})]
    half = agents.workspace / "half"
    agents.kill_when(half.exists)
    (agents.top / "wait").write_text("0.1")
    assert agents.finish(resume=True).returncode == 0
    assert "whole" in agents.observations()[0]
    assert len(agents.events("action")) == 3
    assert _processes_in(agents.workspace) == []


def test_action_that_kills_the_agent_is_given_up(agents: Agents, say: Callable[..., str]) -> None:
    (agents.workspace / "wait.py").write_text("import time\nopen('begun', 'a').write('x')\ntime.sleep(600)\n")
    agents.model.replies = [say("Execute Script", {"filename": "wait.py"}), say("Final Answer", {"final_answer": "x"})]
    begun = agents.workspace / "begun"
    for attempt in (1, 2, 3):

        def runs(attempt: int = attempt) -> bool:
            return len(agents.events("action")) == attempt and begun.exists()

        agents.kill_when(runs, resume=attempt > 1)
    assert agents.finish(resume=True).returncode == 0
    assert "killed during this action" in agents.observations()[0]
    assert not begun.exists()


def test_call_interrupted_by_a_kill_is_counted(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [Completion("late", delay_s=20), say("Final Answer", {"final_answer": "x"})]
    agents.kill_when(lambda: len(agents.server.requests) == 1, "--price", "2,8")
    assert agents.finish(resume=True).returncode == 0
    paid = sum(event["dollars"] for event in agents.events("reply")) + agents.events("call")[0]["dollars"]
    done = agents.finish(resume=True)
    assert done.returncode == 2  # it has ended
    assert paid > agents.events("reply")[0]["dollars"] > 0


def _lines(agents: Agents) -> int:
    return agents.trace.read_bytes().count(b"\n")


def _processes_in(directory: Path) -> list[str]:
    """Return the command lines of processes that work in a directory; other workers run the same scripts in others."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").samefile(directory):
                lines.append((process / "cmdline").read_text())
        except OSError:
            continue
    return lines
