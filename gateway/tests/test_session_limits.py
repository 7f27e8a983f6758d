"""One session does what it can against the others: theirs are answered, and memory, log and connections are bounded."""

from __future__ import annotations

import json
import resource
import select
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from raw_upstream import (
    MODEL,
    RawUpstream,
    answer,
    body_of,
    chunk,
    completion,
    head_of,
    post,
    raw_upstream,
    received,
    stream,
)

from re_bench_gateway import Budget, Gateway, SessionLimits, serving

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

SHORT_S = 1.0


@pytest.fixture
def upstream() -> Iterator[RawUpstream]:
    with raw_upstream() as server:
        server.answer = answer(completion())
        yield server


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def memory_mib(gateway: Gateway) -> float:
    with open(f"/proc/{gateway.pid}/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def until(condition: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_idle_connections_of_one_session_leave_the_others_theirs(upstream: RawUpstream, tmp_path: Path) -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    with serving(upstream.settings(tmp_path / "log", client_timeout_s=SHORT_S)) as gateway:
        idle, other = gateway.open_session(name="idle"), gateway.open_session(name="other")
        connections = [upstream.connected(gateway, idle) for _ in range(920)]
        assert post(gateway, other, body_of()).status_code == 200
        full = [connection for connection in connections[600:] if received(connection).startswith(b"HTTP/1.1 503")]
        assert len(full) == 320
        connections[0].sendall(b"POST /v1/chat/completions HTTP/1.1\r\nx: y\r\n")  # half a head buys no time
        assert {received_or_reset(connection) for connection in connections[:100]} == {b""}
        assert post(gateway, idle, body_of()).status_code == 200  # there is room again


def received_or_reset(connection: socket.socket) -> bytes:
    try:
        return received(connection)
    except ConnectionResetError:
        return b""


def test_streams_that_nobody_reads_hold_up_their_session_alone_and_not_for_long(
    upstream: RawUpstream, tmp_path: Path
) -> None:
    upstream.answer = stream(*[chunk({"content": "x" * 1000})] * 1500, b"[DONE]")
    with serving(upstream.settings(tmp_path / "log", client_timeout_s=SHORT_S)) as gateway:
        unread, other = gateway.open_session(name="unread"), gateway.open_session(name="other")
        for _ in range(50):
            upstream.sent(gateway, unread, body_of(stream=True))
        assert sum(upstream.asked.acquire(timeout=10) for _ in range(16)) == 16
        upstream.answer = answer(completion())
        started = time.monotonic()
        assert post(gateway, other, body_of()).status_code == 200
        waited = time.monotonic() - started
        until(lambda: gateway.usage(unread).requests == 50, 20)
    assert waited < 10
    endings = [line["ending"] for line in lines(tmp_path / "log") if line["session"] == "unread"]
    assert endings.count("disconnected") >= 16


def test_a_request_that_does_not_arrive_ends(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.settings(tmp_path / "log", client_timeout_s=SHORT_S)) as gateway:
        slow = upstream.connected(gateway, gateway.token)
        slow.sendall(head_of(gateway.token, 1000) + b"{")
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_refused_calls_are_counted_and_not_all_logged(upstream: RawUpstream, tmp_path: Path) -> None:
    limits = SessionLimits(free_log_bytes=20_000)
    with serving(upstream.settings(tmp_path / "log", limits=limits)) as gateway:
        poor, other = gateway.open_session(Budget(requests=1), name="poor"), gateway.open_session(name="other")
        assert post(gateway, poor, body_of()).status_code == 200
        assert {post(gateway, poor, body_of("x" * 5000)).status_code for _ in range(20)} == {429}
        assert post(gateway, other, body_of()).status_code == 200
        assert gateway.usage(poor).refused == 20
    logged = lines(tmp_path / "log")
    assert [(line["session"], line["ending"]) for line in logged] == [
        ("poor", "answered"),
        *[("poor", "refused")] * 5,
        ("other", "answered"),
    ]
    assert "counted from here on, and not logged" in logged[5]["error"]["error"]["message"]


def test_a_session_whose_log_is_full_makes_no_more_calls(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.settings(tmp_path / "log", limits=SessionLimits(log_bytes=10_000))) as gateway:
        token = gateway.open_session(name="talkative")
        statuses = [post(gateway, token, body_of("x" * 4000)).status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert "log of this key's calls is full" in post(gateway, token, body_of()).json()["error"]["message"]
    assert upstream.requests == 3


def test_requests_that_wait_are_bounded_in_bytes_and_kept_as_bytes(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.rest = b" "
    many_objects = body_of(user=[[]] * 500_000)  # of 4 bytes each, and 64 in memory
    limits = SessionLimits(calls=1, request_bytes=10_500_000, free_log_bytes=1)
    with serving(upstream.settings(tmp_path / "log", limits=limits, max_body_bytes=4 << 20)) as gateway:
        token, other = gateway.open_session(name="waiting"), gateway.open_session(name="other")
        upstream.sent(gateway, token, body_of())
        assert upstream.asked.acquire(timeout=10)
        before = memory_mib(gateway)
        connections = [upstream.sent(gateway, token, many_objects) for _ in range(6)]
        (refused, *_others), _writable, _broken = select.select(connections, [], [], 20)
        assert refused.recv(1 << 16).startswith(b"HTTP/1.1 429")
        grown = memory_mib(gateway) - before
        upstream.rest = b""
        assert post(gateway, other, body_of()).status_code == 200
        gateway.close_session(token)
        upstream.go_on.set()
    assert grown < 120  # as objects, five take 160 MiB and more


def test_what_has_not_begun_ends_with_its_session(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.answer, upstream.rest = answer(completion())[:-5], completion()[-5:]
    settings = upstream.settings(tmp_path / "log", limits=SessionLimits(calls=2), upstream={"concurrency": 1})
    with serving(settings) as gateway:
        token = gateway.open_session(name="closed")
        running = upstream.sent(gateway, token, body_of("runs"))
        assert upstream.asked.acquire(timeout=10)
        queued = [upstream.sent(gateway, token, body_of("waits")) for _ in range(3)]
        late = upstream.connected(gateway, token)
        late.sendall(head_of(token, len(body_of())) + body_of()[:5])
        until(lambda: gateway.usage(token).remaining is not None)
        time.sleep(0.2)  # the gateway has read all of them
        path = gateway.socket_of(token)
        gateway.close_session(token)
        assert not path.exists()
        for connection in queued:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401")
        assert late.recv(1 << 16).startswith(b"HTTP/1.1 401")
        upstream.go_on.set()
        assert running.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert upstream.requests == 1
    endings = sorted(line["ending"] for line in lines(tmp_path / "log"))
    assert endings == ["answered", "refused", "refused", "refused"]


def test_many_large_requests_do_not_keep_another_session_waiting(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.settings(tmp_path / "log")) as gateway:
        loud, other = gateway.open_session(Budget(requests=0), name="loud"), gateway.open_session(name="other")
        stop = threading.Event()

        def shout() -> None:
            while not stop.is_set():
                post(gateway, loud, body_of("x" * 3_000_000))

        threads = [threading.Thread(target=shout) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert [post(gateway, other, body_of()).status_code for _ in range(5)] == [200] * 5
        stop.set()
        for thread in threads:
            thread.join()
    assert (tmp_path / "log").stat().st_size < 12_000_000
    assert {line["request"]["model"] for line in lines(tmp_path / "log") if line["session"] == "other"} == {MODEL}
