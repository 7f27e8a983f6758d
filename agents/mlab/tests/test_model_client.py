"""The client of models: the fallback after a refusal, retries, caps."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion, ErrorResponse, FakeServer
from hypothesis import given
from hypothesis import strategies as st

from mlab_agent.client import Model, wait_before
from mlab_agent.clock import Clock, Waits
from mlab_agent.models import (
    BudgetSpent,
    Caps,
    ContextFull,
    ModelAway,
    ModelError,
    ModelSettings,
    Prices,
    Spending,
    user,
)
from mlab_agent.parts import check_models
from mlab_agent.settings import ModelOptions, RunSettings, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
Make = Callable[..., Model]


class Server:
    """What the server answers, and what was noted."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], Any] = lambda _request: "fine"
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.models: list[Model] = []
        self.spending = Spending()
        self.waits = Waits()
        self.fake = FakeServer(self.respond)

    def respond(self, request: dict[str, Any]) -> Any:
        return self.answer(request)

    def model(self, left: float | None = None, **settings: Any) -> Model:
        chosen = ModelSettings(name="m", base_url=self.fake.url, **{"first_wait_s": 0.01, **settings})
        self.models.append(Model(chosen, "key", self.spending, self.note, lambda: left, waits=self.waits))
        return self.models[-1]

    def note(self, kind: str, fields: dict[str, Any]) -> None:
        self.notes.append((kind, fields))

    def kinds(self) -> list[str]:
        return [kind for kind, _fields in self.notes]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with made.fake:
        yield made
    for model in made.models:
        model._client.close()  # no other test is to be warned of its sockets


def test_call_and_reply_events(server: Server) -> None:
    model = server.model(prices=Prices(1.0, 2.0))
    reply = model.complete([user("hello")], purpose="step", stop=["END"])
    assert reply.text == "fine"
    assert reply.dollars == pytest.approx((reply.prompt_tokens + 2 * reply.completion_tokens) / 1e6)
    assert server.spending.tokens == 0  # the trace's event counts it
    assert server.kinds() == ["call", "reply"]
    request = server.fake.requests[0]
    assert request["stop"] == ["END"]
    assert request["max_completion_tokens"] == 8192
    assert "tools" not in request
    assert "temperature" not in request


@pytest.mark.parametrize("refused", ["max_completion_tokens", "stop", "temperature", "tools"])
def test_refused_request_is_repeated_in_basic_form(server: Server, refused: str) -> None:
    server.answer = lambda request: ErrorResponse(400, f"unsupported: {refused}") if refused in request else "fine"
    model = server.model(temperature=0.5)
    for _call in range(2):
        assert model.complete([user("x")], purpose="step", tools=[TOOL], stop=["END"]).text == "fine"
    assert len(server.fake.requests) == 3
    assert server.kinds().count("dialect") == 1
    assert server.fake.requests[-1].keys() == {"model", "messages", "max_tokens"}


def test_refused_basic_request_fails(server: Server) -> None:
    server.answer = lambda _request: ErrorResponse(400, "no")
    with pytest.raises(ModelError, match="refused model m"):
        server.model().complete([user("x")], purpose="step")
    assert len(server.fake.requests) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        ErrorResponse(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
        ErrorResponse(400, "prompt is too long"),
        ErrorResponse(413, "too large"),
    ],
)
def test_context_is_halved_after_a_too_long_prompt(server: Server, refusal: ErrorResponse) -> None:
    server.answer = lambda _request: refusal
    model = server.model()
    with pytest.raises(ContextFull):
        model.complete([user("x")], purpose="step")
    assert model.context_tokens == 50_000
    assert len(server.fake.requests) == 1


def test_caps_are_checked_before_the_call(server: Server) -> None:
    server.spending.caps = Caps(dollars=0.001)
    model = server.model(prices=Prices(1.0, 1.0))
    model.complete([user("x")], purpose="step")
    assert server.fake.requests[0]["max_completion_tokens"] < 1000  # what is left pays for no more
    server.spending.add(900, 0.0009)
    with pytest.raises(BudgetSpent) as spent:
        model.complete([user("x")], purpose="step")
    assert spent.value.cap == "cost"
    assert len(server.fake.requests) == 1


@given(st.floats(0, 10), st.integers(0, 100_000), st.integers(1, 10_000), st.floats(0.01, 100), st.floats(0.01, 100))
def test_affordable_output_is_within_the_cap(
    left: float, prompt: int, output_tokens: int, reads: float, writes: float
) -> None:
    prices = Prices(reads, writes)
    spending = Spending(Caps(dollars=left + 1.0), dollars=1.0)
    try:
        output = spending.affordable_output(prompt, output_tokens, prices)
    except BudgetSpent:
        assert prices.dollars(prompt, min(200, output_tokens)) > left * 0.999999
    else:
        assert 0 < output <= output_tokens
        assert prices.dollars(prompt, output) <= left + 1e-9


def test_no_request_without_time(server: Server) -> None:
    with pytest.raises(BudgetSpent) as spent:
        server.model(left=0.0).complete([user("x")], purpose="step")
    assert spent.value.cap == "time"
    assert server.fake.requests == []


def test_requested_wait_is_bounded(server: Server) -> None:
    server.answer = lambda _request: ErrorResponse(503, headers={"Retry-After": "3601"})
    with pytest.raises(ModelAway, match="asks to wait for 3601 s"):
        server.model().complete([user("x")], purpose="step")
    assert len(server.fake.requests) == 1


def test_failed_attempts_and_pauses_are_no_working_time(server: Server, tmp_path: Path) -> None:
    def answer(request: dict[str, Any]) -> Any:
        if server.kinds().count("retry") < 2:
            busy = ErrorResponse(429, headers={"Retry-After-Ms": "300"})
            return Completion("late", delay_s=60) if "retry" in server.kinds() else busy
        refused = ErrorResponse(400, "Unsupported parameter: 'stop' is not supported", param="stop")
        return refused if "stop" in request else Completion("fine", delay_s=0.3)

    def note(wait: dict[str, object]) -> None:
        server.note("wait", wait)
        # Only the second attempt is given up: the others may take a busy machine as long as they do.
        model.settings = replace(model.settings, timeout_s=0.5 if server.kinds().count("wait") == 1 else 60)

    server.answer = answer
    before, began = time.monotonic(), time.time()
    clock, made = Clock(), time.monotonic()
    server.waits = Waits(clock, [tmp_path / "waits"], note)
    model = server.model(timeout_s=60)
    assert model.complete([user("x")], purpose="step", stop=["END"]).text == "fine"
    asked = time.monotonic()
    worked_s, ended, after = clock(), time.time(), time.monotonic()
    waits = [json.loads(line) for line in (tmp_path / "waits").read_text().splitlines()]
    assert [fields for kind, fields in server.notes if kind == "wait"] == waits
    assert len(waits) == 2  # each failed attempt with the pause after it
    assert all(began - 0.01 <= wait["began"] <= wait["ended"] <= ended + 0.01 for wait in waits)
    assert ["429" in wait["reason"] for wait in waits] == [True, False]
    waited_s = sum(wait["ended"] - wait["began"] for wait in waits)
    assert waited_s >= 0.8
    assert asked - made - waited_s - 0.01 <= worked_s  # each wait is written in thousandths
    assert worked_s <= after - before - waited_s + 0.25  # less than the pause, and than the time-out
    assert worked_s >= 0.3  # the answer itself


def test_attempt_cut_by_the_time_limit_is_working_time(server: Server) -> None:
    server.answer = lambda _request: Completion("late", delay_s=1.0)
    clock = Clock()
    server.waits = Waits(clock)
    with pytest.raises(ModelAway):
        server.model(left=0.2, wait_s=0).complete([user("x")], purpose="step")
    assert clock() >= 0.2


def test_server_is_tried_again_until_the_wait_is_over(server: Server) -> None:
    server.answer = lambda _request: ErrorResponse(500, "broken")
    began = time.monotonic()
    with pytest.raises(ModelAway, match=r"has not answered for \d+ s; the last failure: .*broken"):
        server.model(wait_s=1.0).complete([user("x")], purpose="step")
    assert time.monotonic() - began >= 1.0
    retries = server.kinds().count("retry")
    assert len(server.fake.requests) == retries + 1 > 2
    assert server.kinds() == ["call", *["retry"] * retries, "call failed"]


def test_backoff_grows_and_is_bounded() -> None:
    waits = [wait_before(attempt, {}) for attempt in range(2, 30)]
    assert 0.5 <= waits[0] <= 1.0
    assert all(wait <= 60.0 for wait in waits)
    assert waits[-1] >= 30.0


def test_retry_after_header_has_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wait_before(2, {"retry-after": "7"}) == 7.0
    assert wait_before(2, {"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    date = email.utils.formatdate(1_800_000_100, usegmt=True)
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1_800_000_000.0)
        assert wait_before(2, {"retry-after": date}) == 100
    for nonsense in ("soon", "nan", "-1", "inf"):
        assert 0.5 <= wait_before(2, {"retry-after": nonsense}) <= 1.0


def strange(message: Any = None, **changes: Any) -> bytes:
    """Return the body of a completion, with a message and other parts replaced."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}
    if message is not None:
        choice["message"] = message
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage, **changes}).encode()


READABLE = {
    "half of a surrogate pair": strange({"content": "a \ud83d b"}),
    "surrogate in a call": strange({"tool_calls": [{"function": {"name": "\ud83d", "arguments": '"\ud83d"'}}]}),
    "no content": strange({"role": "assistant"}),
    "null content": strange({"content": None}),
    "parts": strange({"content": [{"type": "text", "text": "fine"}, 3, {"text": None}]}),
    "content is an object": strange({"content": {"a": 1}}),
    "arguments are an object": strange({"tool_calls": [{"function": {"name": "look", "arguments": {"a": [1]}}}]}),
    "tool calls are a number": strange({"content": "fine", "tool_calls": 3}),
    "null tool calls": strange({"content": "fine", "tool_calls": [None, {"function": None}]}),
    "two choices, one null": strange(choices=[{"message": {"content": "fine"}}, None]),
    "no usage": strange(usage=None),
    "usage is a list": strange(usage=[1]),
    **{
        f"usage {count}": strange().replace(b'"prompt_tokens": 5, "completion_tokens": 5', (
            f'"prompt_tokens": {count}, "completion_tokens": {count}'.encode()
        ))
        for count in ("0", "-7", "NaN", "Infinity", "1e400", '"many"', "true", "[]", "1" + "0" * 300)
    },
}  # fmt: skip
UNREADABLE = {
    "no choices": strange(choices=[]),
    "null choices": strange(choices=None),
    "null choice": strange(choices=[None]),
    "choices are an object": strange(choices={"0": {"message": {"content": "x"}}}),
    "choice without a message": strange(choices=[{"index": 0}]),
    "a list": b"[1, 2]",
    "a text": b'"fine"',
    "half of the JSON": strange()[:60],
    "no JSON": b"<html>fine</html>",
    "nothing": b"",
}


@pytest.mark.parametrize("body", READABLE.values(), ids=READABLE)
def test_strange_answers_are_read_and_never_free(server: Server, body: bytes) -> None:
    server.answer = lambda _request: ErrorResponse(200, body=body)
    model = server.model(prices=Prices(1.0, 2.0))
    reply = model.complete([user("hello")], purpose="step", tools=[TOOL])
    reply.text.encode()
    if reply.call is not None:
        f"{reply.call.name}{reply.call.arguments}".encode()
    assert 0 < reply.prompt_tokens < 1e9
    assert reply.completion_tokens > 0 or not reply.text
    assert reply.dollars is not None
    assert 0 < reply.dollars < 1e9
    model.complete([user("hello"), {"role": "assistant", "content": reply.text}], purpose="step")


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_answers_without_a_message_are_failures_of_the_server(server: Server, body: bytes) -> None:
    server.answer = lambda _request: ErrorResponse(200, body=body)
    with pytest.raises(ModelAway, match="has not answered"):
        server.model(wait_s=0).complete([user("hello")], purpose="step")


def test_address_where_no_server_has_answered_is_given_up_soon(server: Server) -> None:
    model = Model(
        ModelSettings(name="m", base_url="http://127.0.0.1:9/v1", first_wait_s=0.01),
        "key", server.spending, server.note,
    )  # fmt: skip
    server.models.append(model)
    with pytest.raises(ModelError, match="cannot be reached; check --base-url"):
        model.complete([user("hello")], purpose="step")
    assert server.kinds().count("retry") == 2


@pytest.mark.parametrize(
    ("address", "key", "says"),
    [
        ("localhost:8000/v1", "k", "'localhost:8000/v1' is not the address of a server"),
        ("ftp://host/v1", "k", "is not the address"),
        ("http://", "k", "is not the address"),
        ("http://host:99999/v1", "k", "is not the address"),
        ("http://[::1/v1", "k", "is not the address"),
        ("http://host/v1", "two\nlines", "OPENAI_API_KEY has characters that no key has"),
        ("http://host/v1", "schl\u00fcssel", "OPENAI_API_KEY has characters that no key has"),
    ],
)
def test_malformed_addresses_and_keys_are_refused_at_the_start(address: str, key: str, says: str) -> None:
    settings = RunSettings(base_url=address, model=ModelOptions(name="m"))
    with pytest.raises(SettingsError, match=re.escape(says)):
        check_models(settings, key)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SSL_CERT_FILE", "/nonexistent"), ("ALL_PROXY", "socks9://127.0.0.1:9"), ("HTTPS_PROXY", "ftp://127.0.0.1:9")],
)
def test_unusable_proxies_and_certificates_are_a_usage_error(
    server: Server, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match="with the environment's proxies and certificates"):
        Model(ModelSettings(name="m", base_url="https://host/v1"), "key", server.spending, server.note)
