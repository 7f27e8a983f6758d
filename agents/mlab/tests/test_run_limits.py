"""Whole runs: malformed replies, caps, limits, failures of the server, signals."""

from __future__ import annotations

import json
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion, ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

FIELDS = "Reflection: a\nResearch Plan and Status: the plan\nFact Check: b\nThought: c\n"
REFUSED = {
    "no action": (f"{FIELDS}", "Action:"),
    "missing argument": (f'{FIELDS}Action: Write File\nAction Input: {{"filename": "a"}}', "content"),
    "cut in the middle": (
        f'{FIELDS}Action: Write File\nAction Input: {{"filename": "a", "content": "half',
        "Write File",
    ),
}


def test_malformed_reply_is_repaired(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [
        f"{FIELDS}Action: Write File\nAction Input: {{'filename': 'new.txt', 'content': 'one\ntwo',}}\nObservation: no",
        say("Final Answer", {"final_answer": "ok"}),
    ]
    assert agents.finish().returncode == 0
    assert (agents.workspace / "new.txt").read_text() == "one\ntwo"
    assert "was repaired" in agents.observations()[0]
    assert "dropped" in agents.observations()[0]


def test_malformed_replies_are_reported_to_the_model(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [
        *(reply for reply, _reason in REFUSED.values()),
        say("Final Answer", {"final_answer": "ok"}),
    ]
    assert agents.finish().returncode == 0
    complaints = [event["text"] for event in agents.events("malformed")]
    assert len(complaints) == len(REFUSED)
    for (name, (_reply, reason)), text in zip(REFUSED.items(), complaints, strict=True):
        assert reason in text, name
    for number, (reply, _reason) in enumerate(REFUSED.values(), 1):  # each is shown back once
        shown = [message["content"] for message in agents.server.requests[number]["messages"][2:]]
        assert shown == [reply.strip(), f"Observation:\n{complaints[number - 1]}"]
    assert not (agents.workspace / "a").exists()
    assert len(agents.observations()) == 1  # none of them was a step


def test_malformed_replies_are_dropped_after_a_step(agents: Agents, say: Callable[..., str]) -> None:
    good, end = say("Read File", {"filename": "train.py"}), say("Final Answer", {"final_answer": "ok"})
    agents.model.replies = ["nonsense", good, end]
    assert agents.finish().returncode == 0
    assert "nonsense" not in json.dumps(agents.server.requests[-1]["messages"])


def test_long_malformed_reply_is_shown_shortened(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [f"nonsense {'x' * 5000}", say("Final Answer", {"final_answer": "ok"})]
    assert agents.finish().returncode == 0
    shown = agents.server.requests[-1]["messages"][2]["content"]
    assert shown.startswith("nonsense")
    assert len(shown) < 1000


def test_too_many_malformed_replies_end_the_run(agents: Agents) -> None:
    agents.model.replies = ["nonsense"]
    done = agents.finish()
    assert done.returncode == 1
    assert len(agents.server.requests) == 10
    assert "malformed" in agents.submission


def test_cost_cap(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Read File", {"filename": "train.py"}, plan="The best so far is 0.1.")]
    done = agents.finish("--max-cost", "0.05", "--price", "2,8")
    assert done.returncode == 3, done.stderr
    assert agents.events("end")[0]["reason"] == "cost"
    spent = sum(event["dollars"] for event in agents.events("reply"))
    assert 0.02 < spent <= 0.05
    assert "of $0.05" in agents.observations()[0]
    assert agents.submission == "The best so far is 0.1."


def test_cost_cap_needs_prices(agents: Agents) -> None:
    done = agents.finish("--max-cost", "1")
    assert done.returncode == 2
    assert "--price" in done.stderr


def test_token_cap(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Read File", {"filename": "train.py"})]
    assert agents.finish("--max-tokens", "20000").returncode == 3
    used = sum(event["prompt_tokens"] + event["completion_tokens"] for event in agents.events("reply"))
    assert 5_000 < used <= 20_000
    assert agents.events("end")[0]["reason"] == "tokens"


def test_resume_with_a_higher_cap(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Read File", {"filename": "train.py"})]
    assert agents.finish("--max-tokens", "20000").returncode == 3
    steps = len(agents.observations())
    agents.model.replies = [say("Final Answer", {"final_answer": "later"})]
    assert agents.finish("--max-tokens", "90000", resume=True).returncode == 0
    assert len(agents.observations()) == steps + 1
    assert agents.submission == "later"


def test_final_answer_at_the_step_limit(agents: Agents, say: Callable[..., str]) -> None:
    read, answer = say("Read File", {"filename": "train.py"}), say("Final Answer", {"final_answer": "just in time"})
    agents.model.replies = [read, read, answer]
    assert agents.finish("--max-steps", "2").returncode == 0
    assert "0 of 2 steps" in agents.observations()[1]
    assert "All steps are used" in agents.server.requests[-1]["messages"][-1]["content"]
    assert agents.submission == "just in time"


def test_step_limit_without_final_answer(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Read File", {"filename": "train.py"}, plan="what is known")]
    assert agents.finish("--max-steps", "2").returncode == 3
    assert len(agents.server.requests) == 3
    assert agents.submission == "what is known"


def test_time_limit_during_a_script(agents: Agents, say: Callable[..., str]) -> None:
    begun = "print('begun', flush=True)\nopen('begun', 'w').close()\n"
    (agents.workspace / "slow.py").write_text(f"import time\n{begun}time.sleep(600)\n")
    run, answer = say("Execute Script", {"filename": "slow.py"}), say("Final Answer", {"final_answer": "out of time"})
    agents.model.replies = [run, answer]
    for limit in ("6s", "30s", "90s"):  # a busy machine may need all of the first before the script begins
        shutil.rmtree(agents.run, ignore_errors=True)
        agents.model.replies_given = 0
        began = time.monotonic()
        done = agents.finish("--max-time", limit)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 200
    assert "begun" in agents.observations()[0]
    assert "time limit" in agents.observations()[0]
    assert agents.submission == "out of time"


def test_time_limit_during_a_call(agents: Agents) -> None:
    agents.model.replies = [Completion("too late", delay_s=30)]
    began = time.monotonic()
    done = agents.finish("--max-time", "1s")
    assert time.monotonic() - began < 28
    assert done.returncode == 3
    assert agents.events("end")[0]["reason"] == "time"
    assert agents.submission


_SLOW_END = """
import time
from pathlib import Path
from mlab_agent.workspaces.local import LocalWorkspace
finish = LocalWorkspace.finish
def slow(self, answer):
    Path(__file__).with_name("ending").touch()
    time.sleep(1)
    finish(self, answer)
LocalWorkspace.finish = slow
"""


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_signal_does_not_interrupt_the_end(agents: Agents, number: int | None) -> None:
    (agents.top / "sitecustomize.py").write_text(_SLOW_END)
    agents.model.replies = [Completion("too late", delay_s=30) if number is None else ErrorResponse(401, "wrong key")]
    with agents.start("--max-time", "1s" if number is None else "50s", PYTHONPATH=str(agents.top)) as process:
        if number is not None:
            while not (agents.top / "ending").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.02)
            process.send_signal(number)
        _out, err = process.communicate(timeout=100)
    assert agents.events("end")[0]["reason"] == ("time" if number is None else "model"), err
    assert process.returncode == (3 if number is None else 1)
    assert agents.submission
    assert "Traceback" not in err


def test_prompt_invites_no_invented_results(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Final Answer", {"final_answer": "ok"})]
    assert agents.finish().returncode == 0
    request = agents.server.requests[0]
    actions = request["messages"][0]["content"].partition("\nActions\n")[2]
    inputs = [part.rpartition("}")[2] for part in actions.split("\n\n- ")]
    assert [after.strip() for after in inputs] == [""] * len(inputs)  # nothing follows an action's input
    assert request["stop"] == ["\nObservation:", "\nThe next message shows:"]


IGNORES_TOOLS = 'I will look first.\n<tool_call>\n{"name": "list_files", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(("tools", "native"), [("auto", [True, True, False, False]), ("native", [True] * 4)])
def test_text_format_after_two_replies_without_a_call(agents: Agents, tools: str, native: list[bool]) -> None:
    """Replay a server that ignores ``tools`` with status 200: the first reply is prose, the next a call as text."""
    answer = 'Action: Final Answer\nAction Input: {"final_answer": "x"}'
    agents.model.replies = ["Let us begin.", IGNORES_TOOLS, IGNORES_TOOLS, answer]
    assert agents.finish("--tools", tools).returncode == 0
    assert ["tools" in request for request in agents.server.requests] == native
    assert [bool(request.get("stop")) for request in agents.server.requests] == [not each for each in native]
    assert len(agents.events("dialect")) == (tools == "auto")


def test_native_calls_stay_native(agents: Agents) -> None:
    listing = Completion(call=("list_files", "{}"))
    agents.model.replies = [
        "Let us begin.", listing, IGNORES_TOOLS, "And now?", Completion(call=("final_answer", '{"final_answer": "x"}')),
    ]  # fmt: skip
    assert agents.finish("--tools", "auto").returncode == 0
    assert all("tools" in request for request in agents.server.requests)


def test_temporary_failures_are_retried(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [
        ErrorResponse(200, body=b"<html>not JSON"),
        ErrorResponse(200, body=b"{}"),
        ErrorResponse(429, "slow down", headers={"Retry-After": "0.3"}),
        ErrorResponse(503, headers={"Retry-After-Ms": "50"}),
        say("Final Answer", {"final_answer": "x"}),
    ]
    assert agents.finish().returncode == 0
    waits = [event["wait_s"] for event in agents.events("retry")]
    assert waits[2:] == [0.3, 0.05]
    assert len(waits) == 4
    assert agents.submission == "x"


@pytest.mark.parametrize(
    "refusal",
    [
        ErrorResponse(401, "wrong key"),
        ErrorResponse(404, "no such model"),
        ErrorResponse(429, "no", code="insufficient_quota"),
    ],
)
def test_permanent_failure_ends_the_run(agents: Agents, refusal: ErrorResponse) -> None:
    agents.model.replies = [refusal]
    done = agents.finish()
    assert done.returncode == 1
    assert refusal.message in done.stderr
    assert len(agents.server.requests) == 1
    assert agents.events("end")[0]["reason"] == "model"
    assert agents.submission


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_run(agents: Agents, say: Callable[..., str], number: int) -> None:
    (agents.workspace / "slow.py").write_text("import time\ntime.sleep(600)\n")
    agents.model.replies = [say("Execute Script", {"filename": "slow.py"}, plan="was running")]
    with agents.start() as process:
        while not agents.events("action"):
            time.sleep(0.02)
        time.sleep(0.1)
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == 1
    assert agents.events("end")[0]["reason"] == "stopped"
    assert agents.submission


def test_workspace_errors_are_observations(agents: Agents, say: Callable[..., str]) -> None:
    actions: list[tuple[str, dict[str, Any]]] = [
        ("Read File", {"filename": "../task.txt"}),
        ("Read File", {"filename": "missing"}),
        ("Execute Script", {"filename": "missing.py"}),
        ("Write File", {"filename": "train.py", "content": "x"}),
        ("Edit Script", {"filename": "missing.py", "edit_instruction": "x", "save_filename": "../y"}),
    ]
    agents.model.replies = [*(say(*action) for action in actions), say("Final Answer", {"final_answer": "x"})]
    assert agents.finish("--read-only", "train.py").returncode == 0
    for seen in agents.observations()[: len(actions)]:
        assert seen.startswith("Error: "), seen
    assert "RATE" in (agents.workspace / "train.py").read_text()


def test_second_process_is_refused(agents: Agents) -> None:
    agents.model.replies = [Completion("late", delay_s=100)]
    with agents.start() as process:
        while not agents.events("call"):
            time.sleep(0.02)
        second = agents.finish(resume=True)
        process.kill()
    assert second.returncode == 2
    assert "another process" in second.stderr
    assert agents.finish().returncode == 2  # the directory has a run
