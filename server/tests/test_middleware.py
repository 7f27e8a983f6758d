"""Who may call, and how much a request may hold."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Server, opened, post, serving, text

from re_bench_server.middleware import AccessMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "a-token-for-tests-0123456789"  # noqa: S105 - ours, for these tests


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("guarded")
    file = directory / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    with serving(directory, site, "--prepare", "--host", "0.0.0.0", "--token-file", str(file)) as running:  # noqa: S104
        running.url = running.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        yield running


@pytest.mark.parametrize("client", ["openreward", "ors"])
def test_both_clients_send_the_token_as_their_api_key(guarded: Server, client: str) -> None:
    asyncio.run(with_token(guarded, client))
    assert TOKEN not in guarded.log.read_text()


async def with_token(guarded: Server, client: str) -> None:
    async with opened(client, guarded.url, "example_quick", TOKEN) as session:
        ran = await session.call_tool("bash", {"command": "env; cat /proc/self/environ"})
        assert TOKEN not in text(ran)


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer x"}, {"X-API-Key": ""}])
def test_without_the_token_nothing_is_answered(guarded: Server, headers: dict[str, str]) -> None:
    for path in ("/create_session", "/create", "/rebench/call", "/rebench/tasks", "/nothing"):
        assert post(guarded.url, path, {}, {"X-Session-ID": "sid", **headers})[0] == 401
    assert guarded.get("/health", headers) == {"status": "ok"}
    assert guarded.get("/ready", headers) == {"ready": True}


def test_the_token_may_be_a_bearer(guarded: Server) -> None:
    assert guarded.get("/list_environments", {"Authorization": f"Bearer {TOKEN}"}) == ["rebench"]
    assert guarded.get("/health", {"X-API-Key": TOKEN})["sessions"] == []


async def asked(middleware: AccessMiddleware, pieces: list[bytes], headers: list[tuple[bytes, bytes]]) -> list[Any]:
    last = len(pieces) - 1
    queue = [{"type": "http.request", "body": piece, "more_body": n < last} for n, piece in enumerate(pieces)]
    sent: list[Any] = []

    async def receive() -> Any:
        return queue.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await middleware({"type": "http", "path": "/x", "headers": headers}, receive, send)
    return sent


@pytest.mark.parametrize("length", [b"11", b"-1"])
def test_a_request_of_another_length_is_refused(length: bytes) -> None:
    async def reads_all(_scope: Any, receive: Any, _send: Any) -> None:
        pytest.fail(f"it came through: {receive}")

    middleware = AccessMiddleware(reads_all, token=None, body_bytes=10, health=dict, ready=bool, metrics=reads_all)
    assert asyncio.run(asked(middleware, [b"1" * 20], [(b"content-length", length)]))[0]["status"] == 413


@pytest.mark.parametrize(("before", "after"), [
    (b"event: chunk\r\ndata:  x y", b"event: chunk\r\ndata: \\u0020x y"),
    ("event: end\r\ndata: \u2003x".encode(), b"event: end\r\ndata: \\u2003x"),
    (b"event: end\r\ndata: \r\n\r\n", b"event: end\r\ndata: \r\n\r\n"),
    (b"event: error\r\ndata:  x", b"event: error\r\ndata:  x"),
    (b": ping", b": ping"),
])  # fmt: skip
def test_only_white_space_at_the_left_of_a_piece_is_respelled(before: bytes, after: bytes) -> None:
    async def streams(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": before})

    middleware = AccessMiddleware(streams, token=None, body_bytes=10, health=dict, ready=bool, metrics=streams)
    (message,) = asyncio.run(asked(middleware, [b""], []))
    assert message["body"] == after
    assert json.loads(b'"\\u0020"') == " "
