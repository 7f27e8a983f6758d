"""Whatever an upstream answers: the client gets a completion or an error in OpenAI's shape, no key, and is charged."""

from __future__ import annotations

import functools
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_upstream import KEY, USAGE, RawUpstream, answer, body_of, chunk, completion, post, raw_upstream, stream

from re_bench_gateway import Budget, Gateway, serving
from re_bench_gateway.streams import StreamRedaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

RESERVED = 4096  # tokens of a completion
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in KEY)


@pytest.fixture(scope="module")
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream: RawUpstream, log: Path) -> Iterator[Gateway]:
    with serving(upstream.settings(log, max_answer_bytes=1 << 20)) as gateway:
        yield gateway


def texts_of(response: httpx2.Response) -> tuple[str, list[dict[str, Any]]]:
    """Return all text that a client sees in a response, joined, and its parts as JSON."""
    if response.headers["content-type"].startswith("text/event-stream"):
        parts = [json.loads(line[6:]) for line in response.text.split("\n\n") if line and line != "data: [DONE]"]
    else:
        parts = [response.json()]
    deltas = [choice.get("delta") or {} for part in parts for choice in part.get("choices") or ()]
    joined = "".join(str(delta.get("content") or "") for delta in deltas)
    return joined + json.dumps(parts, ensure_ascii=False), parts


@pytest.mark.parametrize(
    "sent",
    [
        answer(b'{"error": {"message": "it was %b"}}' % ESCAPED.encode(), status=401),
        answer(b'{"error": {"%b": 1}}' % ESCAPED.encode(), status=401),
        answer(b'{"error": {"message": "it was %b"}}' % ESCAPED.encode()),
        answer(b'{"error": "it was %b"}' % ESCAPED.encode()),
        answer(completion(f"it was {KEY}")),
        answer(completion("x", **{KEY: [{KEY: KEY}]})),
        stream(b'{"error": {"message": "it was %b"}}' % ESCAPED.encode()),
        stream(chunk({"content": f"it was {KEY}"}), b"[DONE]"),
        stream(b'{"choices": [{"delta": {"content": "%b"}}]}' % ESCAPED.encode(), b"[DONE]"),
        stream(*(chunk({"content": character}) for character in f"it was {KEY}."), b"[DONE]"),
        stream(*(chunk({"content": part}) for part in (KEY[:9], KEY[9:])), b"x", b"[DONE]"),
    ],
)
def test_a_key_that_the_upstream_echoes_reaches_nobody(
    gateway: Gateway, upstream: RawUpstream, log: Path, sent: bytes
) -> None:
    upstream.answer = sent
    for wants_stream in (False, True):
        joined, _parts = texts_of(post(gateway, gateway.token, body_of(stream=wants_stream)))
        assert "redacted" in joined or (b"event-stream" in sent) != wants_stream
        for form in (KEY, json.dumps(KEY)[1:-1], "real"):
            assert form not in joined
    assert "real" not in log.read_text()


@given(st.lists(st.text("ske-y", min_size=1, max_size=3), max_size=12))
def test_a_key_in_a_stream_is_taken_out_however_it_is_cut(parts: list[str]) -> None:
    redaction, secret = StreamRedaction(["sk-key"]), "sk-key"
    passed = []
    for part in parts:
        passed += redaction.add(json.loads(chunk({"content": part})))
    passed += redaction.rest()
    text = "".join(out["choices"][0]["delta"]["content"] for out in passed)
    assert secret not in text
    assert text == "".join(parts).replace(secret, "[redacted]")


def test_a_stream_is_held_back_only_while_a_key_may_begin() -> None:
    redaction = StreamRedaction([KEY])
    texts = ("one", " task", "s", " more")
    passed = [len(redaction.add(json.loads(chunk({"content": text})))) for text in texts]
    assert passed == [1, 0, 0, 3]


def test_a_name_that_ends_as_a_key_begins_holds_nothing_back() -> None:
    redaction = StreamRedaction([KEY])
    call = {"index": 0, "id": "call_s", "type": "function", "function": {"name": "list_files", "arguments": ""}}
    assert len(redaction.add(json.loads(chunk({"role": "s", "tool_calls": [call]})))) == 1
    call["function"] = {"name": KEY}
    assert KEY not in json.dumps(redaction.add(json.loads(chunk({"tool_calls": [call]}))))


def test_what_only_looks_like_calls_of_tools_is_put_together_as_anything_else(
    gateway: Gateway, upstream: RawUpstream, log: Path
) -> None:
    deltas: list[dict[str, Any]] = [
        {"x": {"tool_calls": [{"index": 1_000_000}]}},
        {"x": {"tool_calls": ["s", {"index": -5}]}},
    ]
    deltas += [{"tool_calls": [{"index": 0, "x": {"tool_calls": [{"index": -5}]}}]}]
    upstream.answer = stream(*map(chunk, deltas), b"[DONE]")
    response = post(gateway, gateway.token, body_of(stream=True))
    assert response.text.endswith("data: [DONE]\n\n")
    message = json.loads(log.read_text().splitlines()[-1])["response"]["choices"][0]["message"]
    assert message["x"] == {"tool_calls": [{"index": 1_000_000}, "s", {"index": -5}]}
    assert message["tool_calls"] == [{"x": {"tool_calls": [{"index": -5}]}}]


@pytest.mark.parametrize("wants_stream", [False, True])
def test_answers_of_servers_that_differ_from_openais_are_accepted(
    gateway: Gateway, upstream: RawUpstream, wants_stream: bool
) -> None:
    content = [{"type": "text", "text": "hi"}]
    choice: dict[str, Any] = {"index": None, "finish_reason": "stop"}
    message = {"content": content, "tool_calls": [{**CALL, "index": None}]}
    if wants_stream:
        upstream.answer = stream(json.dumps({"choices": [{**choice, "delta": message}]}).encode(), b"[DONE]")
    else:
        upstream.answer = answer(json.dumps({"choices": [{**choice, "message": message}]}).encode())
    response = post(gateway, gateway.token, body_of(stream=wants_stream))
    assert response.status_code == 200
    (told,) = [part for part in texts_of(response)[1] if part.get("choices")]
    (choice,) = told["choices"]
    assert choice["index"] == 0
    assert choice["delta" if wants_stream else "message"]["content"] == content


def test_an_answer_to_something_else_is_charged_and_not_asked_for_again(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.answer = answer(b'{"choices": [{"message": 1}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}')
    before = upstream.requests
    with serving(upstream.settings(tmp_path / "log", upstream={"attempts": 8})) as gateway:
        response, (_requests, _prompt, tokens) = charge_of(gateway, body_of())
    assert (response.status_code, upstream.requests - before, tokens) == (502, 1, RESERVED)


def charge_of(gateway: Gateway, body: bytes) -> tuple[httpx2.Response, tuple[int, int, int]]:
    token = gateway.open_session(Budget(dollars=0.05))
    response = post(gateway, token, body)
    used = gateway.close_session(token)
    return response, (used.requests, used.prompt_tokens, used.completion_tokens)


@pytest.mark.parametrize(
    "usage",
    ["1" + "0" * 330, "-1", "NaN", "1e999", "1.5", "true", '"7"', "[]", "{}", "null", str(1 << 31), "1" + "0" * 5000],
)
def test_a_usage_that_is_nonsense_costs_the_reservation(gateway: Gateway, upstream: RawUpstream, usage: str) -> None:
    text = completion(usage={"prompt_tokens": 11, "completion_tokens": 0}).replace(b'"completion_tokens": 0', b"%b" % (
        f'"completion_tokens": {usage}'.encode()
    ))  # fmt: skip
    upstream.answer = answer(text)
    response, (requests, prompt, tokens) = charge_of(gateway, body_of())
    if response.status_code == 200:
        assert (requests, tokens, prompt > 11) == (1, RESERVED, True)
    else:
        assert (response.status_code, requests) == (502, 0)  # no JSON, and so no completion
        assert "no JSON object" in response.json()["error"]["message"]


@functools.cache
def bomb(deflated: bool) -> bytes:
    """Return 256 MiB, compressed piece by piece."""
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS if deflated else zlib.MAX_WBITS + 16)
    return b"".join([compressor.compress(b" " * (1 << 20)) for _ in range(256)]) + compressor.flush()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"])
def test_a_bomb_is_not_unpacked(gateway: Gateway, upstream: RawUpstream, encoding: str) -> None:
    upstream.answer = answer(bomb(encoding == "deflate"), "application/json", 200, f"content-encoding: {encoding}")
    response, charge = charge_of(gateway, body_of())
    assert response.status_code == 502
    assert response.json()["error"]["code"] == "upstream_failed"
    if "more than" in response.json()["error"]["message"]:
        assert charge[2] == RESERVED  # it was produced
    with open(f"/proc/{gateway.pid}/status") as file:  # noqa: PTH123
        peak = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    assert peak < 200


def test_a_stream_without_end_is_cut_and_charged(gateway: Gateway, upstream: RawUpstream) -> None:
    upstream.answer = stream(*[chunk({"content": "x" * 1000})] * 2000)
    response, charge = charge_of(gateway, body_of(stream=True))
    assert "more than 1048576 bytes" in response.text
    assert charge[2] == RESERVED


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**330)
    | st.floats()
    | st.sampled_from(["", KEY, "stop", "tool_calls"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def mutated(base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects in which some part of ``base`` is anything."""
    return st.sampled_from(sorted(paths(base))).flatmap(
        lambda path: json_values.map(lambda value: replaced(base, path, value))
    )


def paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield (*path, str(name))
        yield from paths(part, (*path, str(name)))


def replaced(base: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    if isinstance(base, list):
        return [replaced(part, path[1:], value) if str(n) == path[0] else part for n, part in enumerate(base)]
    return {name: replaced(part, path[1:], value) if name == path[0] else part for name, part in base.items()}


CALL = {"index": 0, "id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "x", "tool_calls": [CALL]}
COMPLETION = {
    "id": "c",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop", "logprobs": {"content": []}}],
    "usage": USAGE,
}
CHUNK = {"id": "c", "choices": [{"index": 0, "delta": MESSAGE, "finish_reason": None}], "usage": USAGE}
ERROR = {"error": {"message": "m", "type": "t", "param": None, "code": "c"}}
bodies = st.one_of(mutated(COMPLETION), mutated(ERROR), json_values).map(lambda value: json.dumps(value).encode())
events = st.one_of(mutated(CHUNK), mutated(ERROR), json_values).map(lambda value: json.dumps(value).encode())
answers = st.one_of(
    st.builds(
        answer, bodies | st.binary(max_size=30), status=st.sampled_from([200, 200, 204, 302, 400, 429, 500, 999])
    ),
    st.lists(events, max_size=4).map(lambda data: stream(*data, b"[DONE]")),
    st.binary(max_size=40),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=answers, wants_stream=st.booleans())
def test_any_answer_is_a_completion_or_a_documented_error(
    gateway: Gateway, upstream: RawUpstream, sent: bytes, wants_stream: bool
) -> None:
    upstream.answer = sent
    response, (requests, prompt, tokens) = charge_of(gateway, body_of(stream=wants_stream, max_tokens=10))
    assert response.status_code == 200 or 400 <= response.status_code < 600
    joined, parts = texts_of(response)
    assert KEY not in joined
    assert all(is_error(part) for part in parts if "choices" not in part), parts
    assert response.status_code == 200 or [list(part) for part in parts] == [["error"]]
    assert "its stderr says why" not in response.text
    if response.status_code == 200 or "no chat.completion" in response.text:  # it was produced
        assert requests == 1
    else:
        assert (requests, prompt, tokens) == (0, 0, 0)


def is_error(part: dict[str, Any]) -> bool:
    error = part.get("error")
    return (
        isinstance(error, dict)
        and isinstance(error["message"], str)
        and all(isinstance(error[name], str | None) for name in ("type", "param", "code"))
    )
