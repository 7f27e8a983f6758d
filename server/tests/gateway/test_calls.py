"""The official client of OpenAI's talks to a gateway's process, which asks a scripted server."""

from __future__ import annotations

import asyncio
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
    async_client,
    chunk,
    client_of,
    completion,
    lines,
    pieces,
)

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_gateway import Gateway


def test_a_plain_call_is_answered_charged_and_logged(
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


def test_an_alias_asks_for_what_it_stands_for(client: openai.OpenAI, upstream: Upstream) -> None:
    ask(client, {"body": completion("hello alias")}, model="cheap")
    assert upstream.asked[-1][1]["model"] == MODEL


def test_a_server_that_does_not_stream_is_streamed_all_the_same(client: openai.OpenAI) -> None:
    got = list(ask(client, {"body": completion("long " * 100)}, stream=True))
    assert "".join(each.choices[0].delta.content or "" for each in got) == "long " * 100


def test_n_choices(client: openai.OpenAI) -> None:
    answer = ask(client, {"body": completion("a", "b", "c")}, n=3)
    assert [choice.message.content for choice in answer.choices] == ["a", "b", "c"]


def test_tools_pass_through_both_ways(client: openai.OpenAI, upstream: Upstream) -> None:
    step = {"body": completion("", tool_calls=[TOOL_CALL])}
    answer = ask(client, step, tools=[TOOL], tool_choice="auto", parallel_tool_calls=False)
    assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
    assert upstream.asked[-1][1]["tools"] == [TOOL]


def test_a_stream_comes_as_it_is_produced(gateway: Gateway, upstream: Upstream, log: Path) -> None:
    async def chunks() -> list[Any]:
        async with async_client(gateway) as client:
            script = json.dumps([{"stream": pieces("one ", "two ", "three"), "until_read": True}])
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": script}], stream=True
            )
            arrived = []
            async for each in stream:
                arrived.append(each)
                upstream.read.release()  # the next is produced
        return arrived

    arrived = asyncio.run(chunks())
    assert [each.choices[0].delta.content for each in arrived] == ["one ", "two ", "three", None]
    assert [each.usage for each in arrived] == [None] * 4  # the gateway asked for the usage, the client did not
    assert lines(log)[-1]["response"]["choices"][0]["message"]["content"] == "one two three"
    assert lines(log)[-1]["tokens"] == {"prompt": 11, "completion": 7}


def test_a_stream_ends_with_the_usage_if_the_client_wants_it(client: openai.OpenAI) -> None:
    stream = ask(client, {"stream": pieces("u")}, stream=True, stream_options={"include_usage": True})
    *_others, last = list(stream)
    assert last.choices == []
    assert last.usage.total_tokens == 18


def test_a_stream_of_tool_calls_is_put_together_in_the_log(client: openai.OpenAI, log: Path) -> None:
    first = {"index": 0, **TOOL_CALL, "function": {"name": "add", "arguments": '{"a"'}}
    second = {"index": 0, "function": {"arguments": ": 1}"}}
    steps = [chunk(delta={"tool_calls": [part]}) for part in (first, second)]
    assert len(list(ask(client, {"stream": steps}, stream=True, tools=[TOOL]))) == 2
    assert lines(log)[-1]["response"]["choices"][0]["message"]["tool_calls"] == [TOOL_CALL]


def test_the_clients_own_helper_reads_a_stream(client: openai.OpenAI) -> None:
    script = json.dumps([{"stream": pieces("a", "b")}])
    with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": script}]) as stream:
        assert stream.get_final_completion().choices[0].message.content == "ab"


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL, "cheap"]
    assert client.models.retrieve("cheap").id == "cheap"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("gpt-4")
    assert caught.value.code == "model_not_found"


def test_a_wrong_key(gateway: Gateway) -> None:
    with client_of(gateway, "sk-wrong") as client, pytest.raises(openai.AuthenticationError) as caught:
        ask(client, {"body": completion("never")})
    assert caught.value.code == "invalid_api_key"
    for headers in ({}, {"authorization": "Bearer"}, {"authorization": f"Basic {gateway.token}"}):
        assert httpx2.get(f"{gateway.address}/models", headers=headers).status_code == 401


def test_another_model(client: openai.OpenAI, upstream: Upstream) -> None:
    asked = len(upstream.asked)
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, {"body": completion("never")}, model="gpt-4")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert len(upstream.asked) == asked


def test_other_routes(client: openai.OpenAI, gateway: Gateway) -> None:
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
        (b"[]", "no JSON object"),
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
def test_bad_requests(gateway: Gateway, body: bytes | dict[str, Any], says: str) -> None:
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
