"""The official client of OpenAI's talks to a gateway's process, which asks a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import pytest

from re_bench_gateway import Budget, Gateway, Model, OpenAICompatible, Settings, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "sk-proj-this-is-the-real-key-0123456789"
MODEL = "gpt-3.5-turbo-0125"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
DOLLARS = 16e-6  # 11 at half a dollar a million, 7 at one and a half
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}

JSON_HEADER = {"content-type": "application/json"}

Step = dict[str, Any]


def completion(*texts: str, **message: Any) -> dict[str, Any]:
    choices = [
        {"index": number, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
        for number, text in enumerate(texts)
    ]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": choices, "usage": USAGE}


def chunk(**part: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": {}, "finish_reason": None, **part}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}


def pieces(*texts: str) -> list[dict[str, Any]]:
    return [*(chunk(delta={"content": text}) for text in texts), chunk(finish_reason="stop")]


class Upstream(ThreadingHTTPServer):
    """A server that does what the last message of a request says: its k-th step when asked for the k-th time."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.broken_off = threading.Event()
        self.running = self.most_running = 0
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    def step(self, headers: dict[str, str], body: dict[str, Any]) -> Step:
        script: list[Step] = json.loads(body["messages"][-1]["content"])
        with self.lock:
            before = sum(other["messages"] == body["messages"] for _headers, other in self.asked)
            self.asked.append((headers, body))
            step: Step = script[min(before, len(script) - 1)]
        return step


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def log_message(self, *_args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step = self.server.step({name.lower(): value for name, value in self.headers.items()}, body)
        with self.server.lock:
            self.server.running += 1
            self.server.most_running = max(self.server.most_running, self.server.running)
        try:
            time.sleep(step.get("sleep", 0))
            self.stream(step, body) if "stream" in step else self.whole(step)
        except (BrokenPipeError, ConnectionResetError):
            self.server.broken_off.set()
        finally:
            with self.server.lock:
                self.server.running -= 1

    def whole(self, step: Step) -> None:
        if step.get("hang_up"):
            self.close_connection = True
            return
        text = step.get("text") or json.dumps(step["body"])
        self.send_response(step.get("status", 200))
        for name, value in {
            **JSON_HEADER,
            "content-length": str(len(text.encode())),
            **step.get("headers", {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def stream(self, step: Step, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        assert body["stream_options"]["include_usage"] is True
        for value in step["stream"]:
            self.event(json.dumps(value))
            time.sleep(step.get("pause", 0))
        if step.get("hang_up"):
            self.close_connection = True
            return
        self.event(json.dumps(chunk() | {"choices": [], "usage": step.get("usage", USAGE)}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: str) -> None:
        text = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(text), text))


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def settings_for(asked: Upstream, log: Path, *, concurrency: int = 50, **changes: Any) -> Settings:
    port = asked.server_address[1]
    server = OpenAICompatible(
        base_url=f"http://127.0.0.1:{port}/v1", key=KEY, attempts=3, patience_s=20, concurrency=concurrency
    )
    models = (Model(name=MODEL), Model(name="cheap", asks_for=MODEL))
    return Settings(**{"upstream": server, "models": models, "log": log, "tcp": True, **changes})


@pytest.fixture(scope="module")
def gateway(upstream: Upstream, log: Path) -> Iterator[Gateway]:
    with serving(settings_for(upstream, log)) as gateway:
        yield gateway


@contextmanager
def client_of(gateway: Gateway, token: str | None = None) -> Iterator[openai.OpenAI]:
    """A client by TCP that does not retry, so that every error shows."""
    with openai.OpenAI(api_key=token or gateway.token, base_url=gateway.address, max_retries=0) as client:
        yield client


def async_client(gateway: Gateway, token: str | None = None) -> openai.AsyncOpenAI:
    """A client by the Unix socket, with its own retries."""
    transport = httpx2.AsyncHTTPTransport(uds=str(gateway.socket))
    return openai.AsyncOpenAI(
        api_key=token or gateway.token,
        base_url="http://gateway/v1",
        http_client=openai.DefaultAsyncHttpxClient(transport=transport),
    )


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with client_of(gateway) as client:
        yield client


def ask(client: openai.OpenAI, *steps: Step, **parameters: Any) -> Any:
    return client.chat.completions.create(
        **{"model": MODEL, "messages": [{"role": "user", "content": json.dumps(steps)}], **parameters}
    )


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


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


def test_a_stream_comes_as_it_is_produced(gateway: Gateway, log: Path) -> None:
    async def times() -> tuple[list[str | None], float, list[Any]]:
        async with async_client(gateway) as client:
            script = json.dumps([{"stream": pieces("one ", "two ", "three"), "pause": 0.1}])
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": script}], stream=True
            )
            arrived = [(time.monotonic(), chunk) async for chunk in stream]
        texts = [each.choices[0].delta.content for _time, each in arrived]
        return texts, arrived[-1][0] - arrived[0][0], [each.usage for _time, each in arrived]

    texts, seconds, usage = asyncio.run(times())
    assert texts == ["one ", "two ", "three", None]
    assert usage == [None] * 4  # the gateway asked for the usage, the client did not
    assert seconds > 0.2
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


FAILURE = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}


def test_a_failure_that_passes_is_retried(client: openai.OpenAI, log: Path) -> None:
    steps = ({"status": 500, "body": FAILURE}, {"hang_up": True}, {"body": completion("at last")})
    assert ask(client, *steps).choices[0].message.content == "at last"
    assert lines(log)[-1]["retries"] == 2


@pytest.mark.parametrize(("name", "value"), [("retry-after", "1"), ("retry-after-ms", "900")])
def test_the_pause_that_a_server_asks_for_is_kept(client: openai.OpenAI, name: str, value: str) -> None:
    limited = {"status": 429, "headers": {name: value}, "body": {"error": {"message": name, "code": "rate_limit"}}}
    started = time.monotonic()
    ask(client, limited, {"stream": pieces("x")}, stream=True).close()
    assert time.monotonic() - started > 0.85


def test_a_pause_beyond_our_patience_is_an_error(client: openai.OpenAI) -> None:
    limited = {"status": 429, "headers": {"retry-after": "3600"}, "body": {"error": {"message": "slow down"}}}
    with pytest.raises(openai.RateLimitError, match="slow down"):
        ask(client, limited)


def test_a_lasting_failure_is_passed_on_without_keys(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, log: Path
) -> None:
    before = gateway.usage()
    message = f"you sent Bearer {KEY} and sk-proj-****cdef"
    body = {"error": {"message": message, "type": "strange", "param": "p", "code": "c", "more": 1}}
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client, {"status": 503, "body": body})
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["more"] == 1
    assert "sk-" not in str(caught.value.body)
    assert sum(json.dumps(message)[1:-1] in str(asked["messages"]) for _headers, asked in upstream.asked) == 3
    after = gateway.usage()
    assert (after.requests, after.dollars, after.failed) == (before.requests, before.dollars, before.failed + 1)
    assert lines(log)[-1]["error"]["error"]["code"] == "c"


def test_a_failure_in_another_shape_gets_ours(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="answered with status 400"):
        ask(client, {"status": 400, "text": "<html>Bad Request</html>"})
    with pytest.raises(openai.InternalServerError, match="no JSON object"):
        ask(client, {"text": "<html>Welcome</html>"})


def test_a_stream_that_breaks_ends_with_an_error(client: openai.OpenAI, gateway: Gateway) -> None:
    before = gateway.usage()
    got = []
    with pytest.raises(openai.APIError, match=r"broke off|ended its stream early"):  # noqa: PT012
        for each in ask(client, {"stream": pieces("abc"), "hang_up": True}, stream=True):
            got.append(each)  # noqa: PERF402
    assert got[0].choices[0].delta.content == "abc"
    assert gateway.usage().completion_tokens == before.completion_tokens + 4096  # unknown, so all that was reserved


def test_a_client_that_leaves_a_stream_pays_for_what_may_be_produced(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream, log: Path
) -> None:
    upstream.broken_off.clear()
    token = gateway.open_session(Budget(tokens=100_000))
    with client_of(gateway, token) as leaving:
        stream = ask(leaving, {"stream": pieces("word") * 200, "pause": 0.02}, stream=True)
        next(stream)
        stream.response.close()
    until = time.monotonic() + 5
    while not gateway.usage(token).requests:
        assert time.monotonic() < until
        time.sleep(0.01)
    used = gateway.usage(token)
    assert used.completion_tokens == 4096
    assert used.prompt_tokens > 11  # a bound: nobody has counted them
    assert used.remaining.tokens == 100_000 - used.prompt_tokens - used.completion_tokens
    assert upstream.broken_off.wait(5)
    assert lines(log)[-1]["ending"] == "disconnected"
    assert ask(client, {"body": completion("others go on")})


def test_a_spent_budget_is_an_insufficient_quota(gateway: Gateway, upstream: Upstream) -> None:
    token = gateway.open_session(Budget(requests=2), name="spender")

    async def spend() -> list[int]:
        async with async_client(gateway, token) as client:
            script = json.dumps([{"body": completion("spent")}])
            for _ in range(2):
                await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": script}])
            asked = len(upstream.asked)
            started = time.monotonic()
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": script}])
            assert time.monotonic() - started < 0.4  # the client's own retries would take longer
            assert (caught.value.code, caught.value.type) == ("insufficient_quota", "insufficient_quota")
            return [asked, len(upstream.asked)]

    before, after = asyncio.run(spend())
    assert before == after
    used = gateway.usage(token)
    assert (used.requests, used.refused, used.remaining.requests) == (2, 1, 0)


@pytest.mark.parametrize("budget", [Budget(dollars=10 * DOLLARS + 0.0021), Budget(tokens=10 * 18 + 1000)], ids=str)
def test_fifty_calls_at_a_time_do_not_overspend_together(gateway: Gateway, budget: Budget) -> None:
    token = gateway.open_session(budget, name="crowd")

    async def crowd() -> list[Any]:
        async with async_client(gateway, token) as client:
            script = json.dumps([{"body": completion("x"), "sleep": 0.01}])
            calls = [
                client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": script}], max_tokens=500, stream=number % 2 == 1
                )
                for number in range(50)
            ]
            return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(crowd())
    used = gateway.usage(token)
    refused = sum(isinstance(result, openai.RateLimitError) for result in results)
    assert used.requests + refused == 50
    assert used.refused == refused
    assert used.requests >= 10  # calls wait for running ones, rather than being refused for what these will not cost
    assert used.dollars is not None
    assert used.dollars == pytest.approx(used.requests * DOLLARS, abs=1e-12)
    assert used.dollars <= (budget.dollars or 1)
    assert used.prompt_tokens + used.completion_tokens <= (budget.tokens or 1e9)


def test_sessions_share_the_gateways_budget_and_have_keys_of_their_own(upstream: Upstream, tmp_path: Path) -> None:
    settings = settings_for(upstream, tmp_path / "log", budget=Budget(requests=2))
    with serving(settings) as gateway:
        first = gateway.open_session(name="first", key="sk-of-the-first-session")
        second = gateway.open_session(Budget(requests=5), name="second")
        for token in (first, second):
            with client_of(gateway, token) as client:
                ask(client, {"body": completion(token[:4])})
        assert [headers["authorization"] for headers, _body in upstream.asked[-2:]] == [
            "Bearer sk-of-the-first-session",
            f"Bearer {KEY}",
        ]
        assert gateway.usage(second).remaining.requests == 0
        with client_of(gateway, second) as client, pytest.raises(openai.RateLimitError):
            ask(client, {"body": completion("no")})
        assert gateway.close_session(first).requests == 1
        with client_of(gateway, first) as client, pytest.raises(openai.AuthenticationError):
            ask(client, {"body": completion("no")})
    text = (tmp_path / "log").read_text()
    assert [json.loads(line)["session"] for line in text.splitlines()] == ["first", "second", "second"]


def test_calls_upstream_are_bounded(upstream: Upstream, tmp_path: Path) -> None:
    with serving(settings_for(upstream, tmp_path / "log", concurrency=3)) as gateway:

        async def many() -> None:
            async with async_client(gateway) as client:
                script = json.dumps([{"body": completion("y"), "sleep": 0.03}])
                create = client.chat.completions.create
                calls = [create(model=MODEL, messages=[{"role": "user", "content": script}]) for _ in range(12)]
                await asyncio.gather(*calls)

        upstream.most_running = 0
        asyncio.run(many())
        assert upstream.most_running == 3


def test_no_secret_shows_anywhere(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # as an operator has it
    with serving(settings_for(upstream, tmp_path / "log")) as gateway:
        secrets = [KEY, gateway.token]
        with client_of(gateway) as client:
            ask(client, {"body": completion(f"my keys are {secrets}")})
            with pytest.raises(openai.BadRequestError) as caught:
                ask(client, {"status": 400, "body": {"error": {"message": f"{KEY} is wrong"}}})
        process = f"/proc/{gateway.pid}"
        shown = [str(caught.value), repr(settings_for(upstream, tmp_path / "log"))]
        for name in ("cmdline", "environ"):
            with open(f"{process}/{name}") as stream:  # noqa: PTH123
                shown.append(stream.read())
        assert os.stat(tmp_path / "log").st_mode & 0o777 == 0o600  # noqa: PTH116
    shown += [(tmp_path / "log").read_text(), *capfd.readouterr()]
    assert len(shown) == 7
    assert not [text for text in shown for secret in secrets if secret in text]


def test_a_stream_that_our_end_cuts_is_settled_and_told(upstream: Upstream, tmp_path: Path) -> None:
    with serving(settings_for(upstream, tmp_path / "log")) as gateway:
        client = openai.OpenAI(api_key=gateway.token, base_url=gateway.address, max_retries=0)
        stream = ask(client, {"stream": pieces("cut") * 300, "pause": 0.02}, stream=True)
        next(stream)
    with client, pytest.raises(openai.APIError, match="the gateway has ended"):
        list(stream)
    (line,) = lines(tmp_path / "log")
    assert line["ending"] == "disconnected"
    assert line["response"]["choices"][0]["message"]["content"].startswith("cutcut")


def test_calls_that_cannot_be_logged_are_not_made(upstream: Upstream, tmp_path: Path) -> None:
    with serving(settings_for(upstream, tmp_path / "log")) as gateway, client_of(gateway) as client:
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (1, 1))  # as a full disk
        ask(client, {"body": completion("paid for")})
        asked = len(upstream.asked)
        with pytest.raises(openai.InternalServerError, match="cannot write its log"):
            ask(client, {"body": completion("not made")})
    assert len(upstream.asked) == asked
