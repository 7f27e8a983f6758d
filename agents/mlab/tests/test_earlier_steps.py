"""`resume --from-step`: the workspace, the memory and the budget as they were after a step."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion

from mlab_agent.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

PRICE = ("--price", "1,1")


def write(say: Callable[..., str], text: str, name: str = "notes.txt") -> str:
    return say("Write File", {"filename": name, "content": text}, plan=f"plan of {text}")


@pytest.fixture
def finished(agents: Agents, say: Callable[..., str]) -> Agents:
    """Return a run of four steps and its final answer, of which the last steps are wrong."""
    agents.model.replies = [
        write(say, "one"),
        write(say, "two"),
        write(say, "wrong", "sub/other.txt"),
        write(say, "wrong"),
        say("Final Answer", {"final_answer": "wrong"}),
    ]
    assert agents.finish(*PRICE).returncode == 0
    agents.model.replies_given = 0
    return agents


def shown_steps(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "assistant"]


def test_back_to_a_step(finished: Agents, say: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    agents = finished
    before = agents.trace.read_bytes()
    spent = sum(event["dollars"] for event in agents.events("reply"))
    (agents.workspace / "by hand.txt").write_text("not in any step")
    undo = say("Undo Edit Script", {"filename": "notes.txt"})
    agents.model.replies = [undo, undo, say("Final Answer", {"final_answer": "right"})]
    asked = len(agents.server.requests)
    done = agents.finish("--from-step", "2", "--max-cost", "1", resume=True)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    assert "back to how things were after step 2; the later steps are set aside" in done.stderr
    assert [text.count("Thought:") for text in shown_steps(agents.server.requests[asked])] == [1, 1]
    assert "wrong" not in str(agents.server.requests[asked])
    assert not (agents.workspace / "sub").exists()
    assert not (agents.workspace / "by hand.txt").exists()
    observations = agents.observations()
    assert "47 of 50 steps" in observations[5]
    assert "before the last write:\none" in observations[5]  # the journal is that of step 2
    assert "did not exist" in observations[6]
    left = 1 - spent - sum(event["dollars"] for event in agents.events("reply")[5:6])
    assert f"${left:.2f} of $1.00" in observations[5]
    assert agents.trace.read_bytes().startswith(before)
    assert main(["show", str(agents.run)]) == 0
    shown = capsys.readouterr().out
    assert "--- Back to how things were after step 2" in shown
    assert shown.index("=== Step 5") < shown.index("--- Back") < shown.rindex("=== Step 3")


def test_back_to_the_beginning_and_again(finished: Agents, say: Callable[..., str]) -> None:
    agents = finished
    for number in (1, 2):
        agents.model.replies = [say("List Files", {}), say("Final Answer", {"final_answer": "x"})]
        agents.model.replies_given = 0
        assert agents.finish("--from-step", "0", resume=True).returncode == 0
        assert [event["number"] for event in agents.events("rewind")] == list(range(1, number + 1))
        assert agents.observations()[-2].startswith("train.py  ")
        assert "notes.txt" not in agents.observations()[-2]


def test_killed_at_any_event_of_going_back(finished: Agents, say: Callable[..., str]) -> None:
    agents = finished
    read = say("Read File", {"filename": "notes.txt"})
    agents.model.replies = [Completion(read, delay_s=20)]
    with agents.start("--from-step", "2", resume=True) as process:
        while not agents.events("restored"):
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        process.kill()
    events = agents.trace.read_bytes().splitlines(keepends=True)
    kinds = [event["kind"] for event in agents.events()]
    for kind in ("rewind", "resume", "restored"):
        agents.trace.write_bytes(b"".join(events[: kinds.index(kind) + 1]))
        (agents.workspace / "notes.txt").write_text("as it was left")
        (agents.workspace / "sub").mkdir(exist_ok=True)
        if kind == "restored":
            (agents.workspace / "notes.txt").write_text("two")
        agents.model.replies = [read, say("Final Answer", {"final_answer": "x"})]
        agents.model.replies_given = 0
        assert agents.finish(resume=True).returncode == 0
        assert agents.observations()[5].startswith("two\n")


@pytest.mark.parametrize(("step", "message"), [("6", "the run has 5"), ("-1", "the run has 5"), ("5", "final answer")])
def test_steps_that_cannot_be_gone_back_to(finished: Agents, step: str, message: str) -> None:
    before = finished.trace.read_bytes()
    done = finished.finish("--from-step", step, resume=True)
    assert done.returncode == 2
    assert message in done.stderr
    assert finished.trace.read_bytes() == before


def test_a_run_of_an_older_version_is_shown_and_not_resumed(finished: Agents) -> None:
    shutil.rmtree(finished.run / "workspace.git")
    done = finished.finish("--from-step", "2", resume=True)
    assert done.returncode == 2
    assert "an older version of mlab-agent made it; start a new run" in done.stderr
    assert main(["show", str(finished.run)]) == 0
