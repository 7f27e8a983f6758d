"""Requests for several choices at upstreams that refuse or ignore ``n``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from scripted_upstream import DOLLARS, MODEL, Upstream, ask, client_of, completion, lines, settings_for

from re_bench_gateway import Budget, Gateway, serving
from re_bench_gateway.choices import merged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


def refusal(status: int, message: str, kind: str) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"code": status, "message": message, "type": kind}}}


REFUSALS = {
    "llama.cpp": refusal(500, "Only one completion choice is allowed", "server_error"),
    "node-llama-cpp": refusal(400, "n > 1 is not supported", "invalid_request_error"),
    "reasoning model": refusal(400, "Reasoning model does not support n > 1, logit_bias, logprobs", "BadRequest"),
    "another": refusal(422, "Input should be less than or equal to 1", "validation_error"),
}
ANSWERS = [{"body": completion(text)} for text in ("a", "b", "c", "d")]


@pytest.fixture
def gateway(upstream: Upstream, log: Path) -> Iterator[Gateway]:
    """Return a new gateway, which does not know yet that the upstream refuses ``n``."""
    log.unlink(missing_ok=True)
    with serving(settings_for(upstream, log)) as gateway:
        yield gateway


def texts(answer: Any) -> list[str]:
    assert [choice.index for choice in answer.choices] == list(range(len(answer.choices)))
    return sorted(choice.message.content for choice in answer.choices)


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS)
def test_refused_choices_come_from_single_calls(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, log: Path, refused: dict[str, Any]
) -> None:
    answer = ask(client, refused, *ANSWERS, n=4, seed=7)
    assert texts(answer) == ["a", "b", "c", "d"]
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (44, 28, 72)
    asked = [body for _headers, body in upstream.asked[-5:]]
    assert [body.get("n") for body in asked] == [4, None, None, None, None]
    assert sorted(body["seed"] for body in asked[1:]) == [7, 8, 9, 10]
    used = gateway.usage()
    assert (used.requests, used.failed, used.prompt_tokens, used.completion_tokens) == (4, 1, 44, 28)
    assert used.dollars == pytest.approx(4 * DOLLARS)
    logged = lines(log)
    assert [line["ending"] for line in logged] == ["upstream_error", *["answered"] * 4]
    assert {line["id"] for line in logged[1:]} == {f"{answer._request_id}-{index}" for index in range(4)}
    assert texts(ask(client, *ANSWERS, refused, n=4)) == ["a", "b", "c", "d"]  # without asking for four again
    assert all("n" not in body for _headers, body in upstream.asked[-4:])


def test_missing_choices_come_from_single_calls(client: openai.OpenAI, gateway: Gateway, upstream: Upstream) -> None:
    chunks = list(ask(client, *ANSWERS[:3], n=3, stream=True))  # as llama-cpp-python and Ollama answer
    assert sorted(chunk.choices[0].delta.content for chunk in chunks) == ["a", "b", "c"]
    assert [body.get("n") for _headers, body in upstream.asked[-3:]] == [3, None, None]
    assert gateway.usage().requests == 3


@pytest.mark.parametrize("failure", [refusal(400, "the prompt is bad", "x"), refusal(401, "no key", "x")])
def test_other_refusals_are_the_clients(client: openai.OpenAI, gateway: Gateway, failure: dict[str, Any]) -> None:
    with pytest.raises(openai.APIStatusError, match=failure["body"]["error"]["message"]):
        ask(client, failure, n=2)
    assert gateway.usage().requests == 0


def test_more_choices_than_requests_are_left_are_refused_at_once(gateway: Gateway) -> None:
    token = gateway.open_session(Budget(requests=2))
    with client_of(gateway, token) as client, pytest.raises(openai.RateLimitError, match="remaining budget"):
        ask(client, REFUSALS["llama.cpp"], *ANSWERS, n=3)
    used = gateway.close_session(token)
    assert (used.requests, used.prompt_tokens, used.refused) == (0, 0, 1)


@pytest.mark.parametrize(
    ("reports", "total"),
    [
        ([{"prompt_tokens": 1, "details": {"cached": 2}}, {"prompt_tokens": 3, "details": {"cached": 4}}],
         {"prompt_tokens": 4, "details": {"cached": 6}}),
        ([{"prompt_tokens": 1, "details": None}, {"prompt_tokens": 3, "details": {"cached": 4}}],
         {"prompt_tokens": 4, "details": None}),
        ([{"prompt_tokens": 1}, None], None),
    ],
)  # fmt: skip
def test_usage_is_summed(reports: list[Any], total: Any) -> None:
    assert merged([{**completion("x"), "usage": usage} for usage in reports])["usage"] == total
    assert merged([completion("x")])["model"] == MODEL
