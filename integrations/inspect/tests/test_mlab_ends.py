"""Test how runs of the agent end: limits, errors and cancellations leave a complete trace and no processes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.agent import Agent, AgentState, agent, run
from inspect_ai.model import ContentReasoning, ContentText, get_model
from inspect_ai.util import LimitExceededError, token_limit
from integrations.inspect.tests.evaluations import output, processes, step

from re_bench_inspect.mlab import mlab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspect_ai.model import Content
    from integrations.inspect.tests.evaluations import Evaluated, Request

pytestmark = pytest.mark.slow

LIST = step("List Files", {})
END = step("Final Answer", {"final_answer": "0.5"})


def check_end(done: Evaluated, reason: str) -> dict[str, Any]:
    """Check that a run was scored and has a complete trace; return its last event."""
    last: dict[str, Any] = done.trace[-1]
    assert done.log.status == "success"
    assert done.sample.error is None
    assert done.sample.scores
    assert (last["kind"], last["reason"]) == ("end", reason)
    assert done.sample.store["MlabStore:reason"] == reason
    assert any(text.startswith(f"**End: {reason}**") for text in done.shown())
    begun = [event.id for event in done.events("span_begin")]
    assert sorted(begun) == sorted(event.id for event in done.events("span_end"))
    return last


def test_a_token_limit(evaluate: Callable[..., Evaluated]) -> None:
    done = evaluate(mlab(), [LIST], token_limit=400)
    assert done.sample.limit
    assert done.sample.limit.type == "token"
    assert "oken limit" in check_end(done, "tokens")["detail"]
    assert done.scripted.given == 4
    assert "290 of 400 tokens" in done.observations()[0]


def test_a_message_limit(evaluate: Callable[..., Evaluated]) -> None:
    done = evaluate(mlab(), [LIST], message_limit=6)
    assert done.sample.limit
    assert done.sample.limit.type == "message"
    check_end(done, "stopped")
    assert len(done.sample.messages) == 5  # the next prompt also has a system message
    assert "of 6 messages" in done.observations()[0]


@pytest.mark.parametrize("limit", ["time", "working"])
def test_a_time_limit_during_a_call(evaluate: Callable[..., Evaluated], limit: str) -> None:
    async def slow(_request: Request) -> str:
        await anyio.sleep(60)
        return LIST

    start = time.monotonic()
    done = evaluate(mlab(), [LIST, slow], **{f"{limit}_limit": 2})
    assert time.monotonic() - start < 30
    assert done.sample.limit
    assert done.sample.limit.type == limit
    check_end(done, "time")
    assert done.sample.output.completion == LIST


def test_the_agent_reserves_time_for_its_final_answer(
    evaluate: Callable[..., Evaluated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlab_agent.budget._RESERVE_SHARE", 0.7)  # 5 % of a few seconds is too short
    replies = [step("Execute Script", {"filename": "slow.sh"}), END]
    done = evaluate(mlab(), replies, files={"slow.sh": "setsid sleep 62.3 &\nsleep 62.3\n"}, time_limit=7)
    assert done.sample.limit is None
    check_end(done, "final answer")
    assert "Stopped at its time limit" in done.observations()[0]
    assert "The time is over." in done.scripted.requests[1].messages[-1].text
    assert done.sample.output.completion == "0.5"
    assert not processes("sleep 62.3")


def test_a_limit_of_the_calling_agent(evaluate: Callable[..., Evaluated]) -> None:
    errors: list[LimitExceededError] = []

    @agent
    def outer() -> Agent:
        async def execute(state: AgentState) -> AgentState:
            state, error = await run(mlab(), "the task", limits=[token_limit(250)])
            assert error
            errors.append(error)
            assert len(state.messages) == 5
            await get_model().generate("go on")
            return state

        return execute

    done = evaluate(outer(), [LIST])
    assert (done.sample.error, done.sample.limit) == (None, None)
    assert errors[0].type == "token"
    assert done.trace[-1]["reason"] == "tokens"
    assert done.scripted.given == 4


def test_max_steps(evaluate: Callable[..., Evaluated]) -> None:
    done = evaluate(mlab(max_steps=2), [LIST])
    check_end(done, "steps")
    assert done.scripted.given == 3
    assert done.sample.output.completion == "look, then improve"


def test_an_error_of_the_provider_fails_the_sample(evaluate: Callable[..., Evaluated]) -> None:
    done = evaluate(mlab(), [LIST, RuntimeError("no such model")])
    assert done.log.status == "error"
    assert done.sample.error
    assert "no such model" in done.sample.error.message
    assert (done.trace[-1]["kind"], done.trace[-1]["reason"]) == ("end", "stopped")
    assert "no such model" in done.trace[-1]["detail"]


def test_error_messages(evaluate: Callable[..., Evaluated]) -> None:
    with pytest.raises(PrerequisiteError, match=r"re_bench/mlab: tools=maybe: .*; max_steps=0: "):
        mlab(tools="maybe", max_steps=0)  # type: ignore[arg-type]
    for wrong, message in (
        (mlab(directory="nowhere"), "mlab cannot work in this sandbox: .*nowhere"),
        (mlab(python="python9"), "there is no program python9"),
        (mlab(trace_directory="/proc/traces"), "/proc/traces: cannot write traces"),
    ):
        done = evaluate(wrong, [LIST])
        assert done.log.status == "error"
        assert done.sample.error
        assert re.search(message, done.sample.error.message), done.sample.error.message


class RefusedError(Exception):
    """An error like a provider's, with the HTTP status."""

    status_code = 400
    param = None


def test_text_format_is_the_fallback_if_the_provider_rejects_tools(evaluate: Callable[..., Evaluated]) -> None:
    done = evaluate(mlab(), [RefusedError("this model does not support tools"), LIST, END])
    assert done.sample.output.completion == "0.5"
    assert done.scripted.requests[0].tools
    assert not done.scripted.requests[1].tools
    refused = evaluate(mlab(tools="text"), [RefusedError("this prompt is not allowed")])
    assert refused.log.status == "error"


def test_the_context_size_is_halved_when_it_is_full(evaluate: Callable[..., Evaluated]) -> None:
    full = output("", stop="model_length")
    done = evaluate(mlab(), [LIST, full, END])
    assert done.sample.output.completion == "0.5"
    assert [event["context_tokens"] for event in done.trace if event["kind"] == "dialect"] == [50_000]


def test_reasoning_before_a_tool_call_is_sent_back(evaluate: Callable[..., Evaluated]) -> None:
    thought = output("", ("list_files", {"directory": "."}))
    content: list[Content] = [
        ContentReasoning(reasoning="first the files", signature="s"),
        ContentText(text="Thought: look"),
    ]
    thought.choices[0].message.content = content
    done = evaluate(mlab(), [thought, output("", ("final_answer", {"final_answer": "x"}))])
    sent = done.scripted.requests[1].messages[2].content
    assert isinstance(sent[0], ContentReasoning)
    assert sent[0].signature == "s"
    assert done.trace[3]["fields"] == {"Thought": "look"}


def test_replies_are_cached(
    evaluate: Callable[..., Evaluated], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    directory = tmp_path / "workspace"  # its name is part of prompts
    directory.mkdir()
    agent = mlab(cache=True, directory=str(directory))
    first, second = (evaluate(agent, [LIST, END]) for _again in range(2))
    assert (first.scripted.given, second.scripted.given) == (2, 0)
    assert second.sample.output.completion == "0.5"
    assert not second.sample.model_usage
