"""usage.json, SIGUSR1, --check and --seed, for programs that run the agent."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest
from fake_server import Completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

PRICE = ("--price", "1,2")


def usage(agents: Agents) -> dict[str, object]:
    path = agents.run / "usage.json"
    written: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    return written


def test_suspend_and_resume_with_usage(agents: Agents, say: Callable[..., str]) -> None:
    look = say("List Files", {"directory": "."})
    agents.model.replies = [look, Completion(say("Read File", {"filename": "train.py"}), delay_s=30)]
    with agents.start(*PRICE, "--seed", "7", "--max-cost", "3") as process:
        while usage(agents).get("steps") != 1 or len(agents.events("call")) != 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        before = sum(reply["dollars"] for reply in agents.events("reply"))
        process.send_signal(signal.SIGUSR1)
        _out, err = process.communicate()
    assert process.returncode == 4
    assert err.endswith("mlab-agent: suspended; continue with: mlab-agent resume RUN\n")
    assert not agents.events("end")
    suspended = usage(agents)
    call = agents.events("call")[1]
    assert suspended["dollars"] == before + call["dollars"] > before
    assert suspended["reason"] is None
    agents.model.replies = [say("Final Answer", {"final_answer": "done"})]
    agents.model.replies_given = 0
    assert agents.finish(resume=True).returncode == 0
    ended = usage(agents)
    assert ended["reason"] == "final answer"
    assert ended["steps"] == 2
    assert ended["dollars"] >= suspended["dollars"]  # type: ignore[operator]
    assert {request["seed"] for request in agents.server.requests} == {7}


def test_unknown_cost_is_null(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Final Answer", {"final_answer": "done"})]
    assert agents.finish().returncode == 0
    assert usage(agents)["dollars"] is None
    assert usage(agents)["tokens"] == sum(
        reply["prompt_tokens"] + reply["completion_tokens"] for reply in agents.events("reply")
    )


def test_check_option(agents: Agents) -> None:
    missing = agents.finish("--check", "--max-cost", "3")
    assert missing.returncode == 2
    assert "give --price IN,OUT" in missing.stderr
    assert agents.finish("--check", "--max-cost", "3", *PRICE).returncode == 0
    lacking = agents.finish("--check", "--key-variable", "NO_SUCH_KEY", "--base-url", "https://api.openai.com/v1")
    assert lacking.returncode == 2
    assert "set NO_SUCH_KEY" in lacking.stderr
    assert not agents.run.exists()
    assert not agents.server.requests
