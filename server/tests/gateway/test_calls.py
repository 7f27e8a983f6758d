"""Calls of the official OpenAI client through a gateway to a scripted upstream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import pytest
from scripted_upstream import (
    DOLLARS,
    KEY,
    MODEL,
    TOOL,
    TOOL_CALL,
    Upstream,
    ask,
    client_of,
    completion,
    lines,
)

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_gateway import Gateway

pytestmark = pytest.mark.integration


def test_call_is_answered_charged_and_logged(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, log: Path
) -> None:
    before = gateway.usage()
    answer = ask(client, {"body": completion("hello")}, temperature=0.5, seed=3, stop=["x"], response_format=None)
    assert answer.choices[0].message.content == "hello"
    headers, body = upstream.asked[-1]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (body["temperature"], body["seed"], body["stop"], body["response_format"]) == (0.5, 3, ["x"], None)
    after = gateway.usage()
    assert (after.requests, after.prompt_tokens, after.completion_tokens) == (
        before.requests + 1,
        before.prompt_tokens + 11,
        before.completion_tokens + 7,
    )
    assert after.dollars == pytest.approx((before.dollars or 0) + DOLLARS, abs=1e-12)
    line = lines(log)[-1]
    assert (line["ending"], line["session"], line["retries"]) == ("answered", "main", 0)
    assert line["response"] == completion("hello")
    assert line["tokens"] == {"prompt": 11, "completion": 7}
    assert line["dollars"] == DOLLARS
    assert line["id"] == answer._request_id


def test_alias_maps_to_the_upstream_model(client: openai.OpenAI, upstream: Upstream) -> None:
    ask(client, {"body": completion("hello alias")}, model="cheap")
    assert upstream.asked[-1][1]["model"] == MODEL


def test_stream_has_one_chunk_per_choice_and_optional_usage(
    client: openai.OpenAI, upstream: Upstream, log: Path
) -> None:
    step = {"body": completion("long " * 100, "b")}
    got = list(ask(client, step, stream=True, n=2))
    assert [each.choices[0].delta.content for each in got] == ["long " * 100, "b"]
    assert not {"stream", "stream_options"} & upstream.asked[-1][1].keys()
    *_others, last = list(ask(client, step, stream=True, n=2, stream_options={"include_usage": True}))
    assert (last.choices, last.usage.total_tokens) == ([], 18)
    assert lines(log)[-1]["tokens"] == {"prompt": 11, "completion": 7}


def test_tools_pass_through_both_ways(client: openai.OpenAI, upstream: Upstream) -> None:
    step = {"body": completion("", tool_calls=[TOOL_CALL])}
    answer = ask(client, step, tools=[TOOL], tool_choice="auto", parallel_tool_calls=False)
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
    assert upstream.asked[-1][1]["tools"] == [TOOL]
    (streamed,) = ask(client, step, tools=[TOOL], stream=True)
    assert streamed.choices[0].delta.tool_calls[0].function.arguments == '{"a": 1}'


def test_stream_works_with_the_client_helper(client: openai.OpenAI) -> None:
    script = json.dumps([{"body": completion("ab")}])
    with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": script}]) as stream:
        assert stream.get_final_completion().choices[0].message.content == "ab"


def test_list_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL, "cheap"]
    assert client.models.retrieve("cheap").id == "cheap"
    for call in (lambda: client.models.retrieve("gpt-4"), lambda: ask(client, {}, model="gpt-4")):
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert caught.value.code == "model_not_found"


def test_wrong_key_is_rejected(gateway: Gateway) -> None:
    with client_of(gateway, "sk-wrong") as client, pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
        ask(client, {"body": completion("never")})
    for headers in ({}, {"authorization": "Bearer"}, {"authorization": f"Basic {gateway.token}"}):
        assert httpx2.get(f"{gateway.address}/models", headers=headers).status_code == 401


def test_unknown_routes_are_404(client: openai.OpenAI, gateway: Gateway) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model=MODEL, input="text")
    assert caught.value.code == "unknown_url"
    for method, path in (("GET", "/chat/completions"), ("DELETE", "/models"), ("GET", "/../etc/passwd")):
        response = httpx2.request(method, f"{gateway.address}{path}")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_url")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "parse"),
        (b"{", "parse"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "parse"),
        (b'{"model": "\xff"}', "parse"),
        (b'{"temperature": NaN}', "parse"),
        (b'{"temperature": 1e999}', "parse"),
        (b'{"tools": ' + b"[" * 300 + b"]" * 300 + b"}", "recursion"),
        ({"model": 1}, "model"),
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [1]}, "messages"),
        ({"messages": [{}]}, "role"),
        ({"n": 0}, "'n'"),
        ({"n": True}, "'n'"),
        ({"n": 1.5}, "'n'"),
        ({"n": 1000}, "'n'"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 4097}, "4096"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"messages": [{"role": "user", "content": "x" * (4 << 20)}]}, "bytes"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_malformed_requests_are_rejected(gateway: Gateway, body: bytes | dict[str, Any], says: str) -> None:
    good = {"model": MODEL, "messages": [{"role": "user", "content": "[]"}]}
    content = body if isinstance(body, bytes) else json.dumps({**good, **body}).encode()
    response = httpx2.post(
        f"{gateway.address}/chat/completions",
        content=content,
        headers={"authorization": f"Bearer {gateway.token}", "content-type": "application/json"},
    )
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert says in response.json()["error"]["message"]
