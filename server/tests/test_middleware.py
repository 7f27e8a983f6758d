"""Authentication, streams, and requests that create sessions."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Raw, Server, opened, post, serving, text, until

from re_bench_server.middleware import AccessMiddleware

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


TOKEN = "a-token-for-tests-0123456789"  # noqa: S105 - for these tests


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
def test_clients_send_the_token_as_api_key(guarded: Server, client: str) -> None:
    asyncio.run(with_token(guarded, client))
    assert TOKEN not in guarded.log.read_text()


async def with_token(guarded: Server, client: str) -> None:
    async with opened(client, guarded.url, "example_quick", TOKEN) as session:
        ran = await session.call_tool("bash", {"command": "env; cat /proc/self/environ"})
        assert TOKEN not in text(ran)


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"Authorization": "Bearer x"}, {"X-API-Key": ""}])
def test_requests_without_token_are_401(guarded: Server, headers: dict[str, str]) -> None:
    for path in ("/create_session", "/create", "/rebench/call", "/rebench/tasks", "/nothing"):
        assert post(guarded.url, path, {}, {"X-Session-ID": "sid", **headers})[0] == 401
    assert guarded.get("/health", headers) == {"status": "ok"}
    assert guarded.get("/ready", headers) == {"ready": True}


def test_token_as_bearer(guarded: Server) -> None:
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


@pytest.mark.parametrize(("before", "after"), [
    (b"event: chunk\r\ndata:  x y", b"event: chunk\r\ndata: \\u0020x y"),
    ("event: end\r\ndata: \u2003x".encode(), b"event: end\r\ndata: \\u2003x"),
    (b"event: end\r\ndata: \r\n\r\n", b"event: end\r\ndata: \r\n\r\n"),
    (b"event: error\r\ndata:  x", b"event: error\r\ndata:  x"),
    (b": ping", b": ping"),
])  # fmt: skip
def test_leading_white_space_of_chunks_is_escaped(before: bytes, after: bytes) -> None:
    async def streams(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": before})

    middleware = AccessMiddleware(streams, token=None, health=dict, ready=bool, metrics=streams)
    (message,) = asyncio.run(asked(middleware, [b""], []))
    assert message["body"] == after
    assert json.loads(b'"\\u0020"') == " "


BODY = {"task_spec": {"id": "example_quick"}, "env_name": "rebench"}


def names(server: Server) -> list[str]:
    return [one["name"] for one in server.health()["sessions"]]


@pytest.mark.parametrize("toolset", ["web", "cli", "no-such-toolset"])
def test_toolsets_are_rejected(server: Server, toolset: str) -> None:
    status, reply = post(server.url, "/create", BODY | {"toolset_name": toolset}, {"X-Session-ID": "with-tools"})
    assert (status, "does not accept toolsets" in reply["detail"]) == (400, True)
    assert names(server) == []


def test_concurrent_creates_make_one_session(server: Server) -> None:
    before, statuses = server.workspaces(), list[int]()
    headers = {"X-Session-ID": "many"}
    callers = [
        threading.Thread(target=lambda: statuses.append(post(server.url, "/create", BODY, headers)[0]))
        for _ in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(statuses) == [200, *[400] * 7]
    assert len(names(server)) == 1
    post(server.url, "/delete", {}, headers)
    until(lambda: names(server) == [] and server.workspaces() == before)


def test_misplaced_secrets_are_not_logged(server: Server) -> None:
    wrong: Any = BODY | {"secrets": {"openai_api_key": "plain-secret-0815"}}
    assert post(server.url, "/create", wrong, {"X-Session-ID": "wrong"})[0] == 422
    session = Raw(server, "example_quick")
    assert session.call("bash", command="true", key="plain-secret-0816")["reason"] == "input_validation"
    assert session.call("bash", command="x" * (2 << 20))["reason"] == "input_validation"
    session.delete()
    text = server.log.read_text()
    assert "plain-secret" not in text
    assert max(map(len, text.splitlines())) < 10_000
