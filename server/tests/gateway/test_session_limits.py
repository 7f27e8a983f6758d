"""One session does what it can against the others: theirs are answered, and memory, log and connections are bounded."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from raw_upstream import (
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

from re_bench.errors import ReBenchError
from re_bench_gateway import Budget, Gateway, SessionLimits, serving
from re_bench_gateway.sessions import Parsing

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

SHORT_S = 1.0


@pytest.fixture(scope="module")
def server() -> Iterator[RawUpstream]:
    with raw_upstream() as server:
        yield server


@pytest.fixture
def upstream(server: RawUpstream) -> Iterator[RawUpstream]:
    server.answer, server.rest = answer(completion()), b""
    server.go_on.clear()
    server.asked = threading.Semaphore(0)
    server.requests = 0
    with server.clients:
        yield server


@pytest.fixture(scope="module")
def gateway(server: RawUpstream, log: Path) -> Iterator[Gateway]:
    """Of much patience, and limits that are soon reached."""
    with limited(server, log, client_timeout_s=120) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def impatient_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("impatient") / "calls.jsonl"


@pytest.fixture(scope="module")
def impatient(server: RawUpstream, impatient_log: Path) -> Iterator[Gateway]:
    """Of the same limits, and little patience."""
    with limited(server, impatient_log, client_timeout_s=SHORT_S) as gateway:
        yield gateway


def limited(server: RawUpstream, log: Path, **changes: Any) -> AbstractContextManager[Gateway]:
    limits = SessionLimits(connections=30, calls=2, log_bytes=30_000, free_log_bytes=20_000)
    return serving(server.settings(log, limits=limits, upstream={"concurrency": 6}, **changes))


def lines(log: Path, *names: str) -> list[dict[str, Any]]:
    """Return what the log says of the sessions of these names."""
    entries = map(json.loads, log.read_text().splitlines())
    return [entry for entry in entries if entry["session"] in names]


def memory_mib(gateway: Gateway) -> float:
    with open(f"/proc/{gateway.pid}/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def cpu_s(gateway: Gateway) -> float:
    with open(f"/proc/{gateway.pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_connections_of_a_session_that_has_all_of_its_own_wait(upstream: RawUpstream, gateway: Gateway) -> None:
    idle, other = gateway.open_session(name="idle"), gateway.open_session(name="other")
    first = [upstream.connected(gateway, idle) for _ in range(30)]
    waiting = [upstream.sent(gateway, idle, body_of()) for _ in range(40)]
    assert post(gateway, other, body_of()).status_code == 200
    assert not select.select([*first, *waiting], [], [], 0)[0]  # neither refused nor answered
    for connection in first:
        connection.close()
    for connection in waiting:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.close()


def test_connections_without_a_request_end_and_make_room(upstream: RawUpstream, impatient: Gateway) -> None:
    token = impatient.open_session(name="idle")
    first = [upstream.connected(impatient, token) for _ in range(30)]
    with suppress(BrokenPipeError, ConnectionResetError):  # after a moment it has ended
        first[0].sendall(b"POST /v1/chat/completions HTTP/1.1\r\nx: y\r\n")  # half a head buys no time
    assert post(impatient, token, body_of()).status_code == 200
    assert {received_or_reset(connection) for connection in first} == {b""}


def test_a_gateway_without_descriptors_goes_on_when_it_has_some(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(upstream.settings(tmp_path / "log")) as gateway:
        token = gateway.open_session(name="many")
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (40, 10_200))
        connections = [upstream.connected(gateway, token) for _ in range(60)]
        # Beside these there is its control channel's, whose number is the one that it has here, maybe a higher one.
        until(lambda: {path.name for path in Path(f"/proc/{gateway.pid}/fd").iterdir()} >= {*map(str, range(40))})
        before = gateway.usage()
        with pytest.raises(ReBenchError, match="Too many open files"):
            gateway.open_session(name="late")
        assert gateway.usage() == before
        for connection in connections:
            connection.close()
        assert post(gateway, token, body_of()).status_code == 200
        assert post(gateway, gateway.open_session(name="late"), body_of()).status_code == 200


def test_a_gateway_that_may_open_too_few_files_does_not_start() -> None:
    code = (
        "import resource; from re_bench_gateway.listeners import Listeners\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))\n"
        "Listeners(None, None)\n"
    )
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: the gateway needs more than 200 open files and may have 150" in failed.stderr


def received_or_reset(connection: socket.socket) -> bytes:
    try:
        return received(connection)
    except ConnectionResetError:
        return b""


def with_unread_streams(upstream: RawUpstream, gateway: Gateway) -> str:
    """Return the token of a session with six streams that nobody reads, two of which have begun."""
    upstream.answer = stream(*[chunk({"content": "x" * 1000})] * 1500, b"[DONE]")
    unread = gateway.open_session(name="unread")
    while upstream.asked.acquire(blocking=False):
        pass  # by the tests before
    for _ in range(6):
        upstream.sent(gateway, unread, body_of(stream=True))
    assert sum(upstream.asked.acquire(timeout=60) for _ in range(2)) == 2
    return unread


def test_streams_that_nobody_reads_hold_up_their_session_alone(upstream: RawUpstream, gateway: Gateway) -> None:
    unread, other = with_unread_streams(upstream, gateway), gateway.open_session(name="beside unread")
    upstream.answer = answer(completion())
    assert post(gateway, other, body_of()).status_code == 200
    assert gateway.usage(unread).requests == 0  # none of them has ended


def test_streams_that_nobody_reads_do_not_hold_up_their_session_for_long(
    upstream: RawUpstream, impatient: Gateway, impatient_log: Path
) -> None:
    unread = with_unread_streams(upstream, impatient)
    until(lambda: impatient.usage(unread).requests == 6)
    assert [line["ending"] for line in lines(impatient_log, "unread")].count("disconnected") >= 2


def read_slowly(connection: socket.socket, size: int) -> tuple[int, float]:
    """Read until ``size`` bytes have come or the end; return how many have come, and the longest pause of ours."""
    got, longest = 0, 0.0
    began = before = time.monotonic()
    while got < size:
        slow = before < began + 2 * SHORT_S  # less than a low-water mark in the time that it has to begin to read
        time.sleep(0.1 * slow)
        piece = b""
        with suppress(ConnectionResetError):
            piece = connection.recv(100_000 if slow else 1 << 20)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
        got += len(piece)
        if not piece:
            break
    return got, longest


def test_a_client_that_reads_slowly_gets_all_of_a_long_answer(upstream: RawUpstream, impatient: Gateway) -> None:
    upstream.answer = answer(completion("x" * 4_000_000))
    for number in range(20):
        connection = upstream.sent(impatient, impatient.open_session(name=f"slow {number}"), body_of())
        got, longest = read_slowly(connection, 4_000_000)
        if got >= 4_000_000 or longest < SHORT_S / 2:  # after a longer one it may be cut off rightly
            break
    assert got >= 4_000_000, "the gateway has closed the connection"


def test_a_request_that_does_not_arrive_ends(upstream: RawUpstream, impatient: Gateway) -> None:
    slow = upstream.connected(impatient, impatient.token)
    slow.sendall(head_of(impatient.token, 1000) + b"{")
    assert slow.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_a_session_may_have_a_number_of_calls_of_its_own(upstream: RawUpstream, gateway: Gateway) -> None:
    upstream.rest = b" "
    token = gateway.open_session(name="scoring", calls=5)
    for _ in range(6):
        upstream.sent(gateway, token, body_of())
    assert [upstream.asked.acquire(timeout=60) for _ in range(5)] == [True] * 5
    assert not upstream.asked.acquire(timeout=0.2)
    upstream.go_on.set()
    until(lambda: gateway.usage(token).requests == 6)


def test_refused_calls_are_counted_and_not_all_logged(gateway: Gateway, log: Path) -> None:
    poor, other = gateway.open_session(Budget(requests=1), name="poor"), gateway.open_session(name="rich")
    assert post(gateway, poor, body_of()).status_code == 200
    assert {post(gateway, poor, body_of("x" * 5000)).status_code for _ in range(20)} == {429}
    assert post(gateway, other, body_of()).status_code == 200
    assert gateway.usage(poor).refused == 20
    logged = lines(log, "poor", "rich")
    assert [(line["session"], line["ending"]) for line in logged] == [
        ("poor", "answered"),
        *[("poor", "refused")] * 5,
        ("rich", "answered"),
    ]
    assert "counted from here on, and not logged" in logged[5]["error"]["error"]["message"]


def test_a_session_whose_log_is_full_makes_no_more_calls(upstream: RawUpstream, gateway: Gateway) -> None:
    token = gateway.open_session(name="talkative")
    statuses = [post(gateway, token, body_of("x" * 12_000)).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert "log of this key's calls is full" in post(gateway, token, body_of()).json()["error"]["message"]
    assert upstream.requests == 3


def test_requests_that_wait_are_bounded_in_bytes_and_kept_as_bytes(upstream: RawUpstream, tmp_path: Path) -> None:
    upstream.rest = b" "
    many_objects = body_of(user=[[]] * 250_000)  # of 4 bytes each, and 64 in memory
    limits = SessionLimits(calls=1, request_bytes=5_250_000, free_log_bytes=1)
    with serving(upstream.settings(tmp_path / "log", limits=limits, max_body_bytes=4 << 20)) as gateway:
        token, other = gateway.open_session(name="waiting"), gateway.open_session(name="other")
        upstream.sent(gateway, token, body_of())
        assert upstream.asked.acquire(timeout=60)
        before = memory_mib(gateway)
        connections = [upstream.sent(gateway, token, many_objects) for _ in range(6)]
        (refused, *_others), _writable, _broken = select.select(connections, [], [], 60)
        assert refused.recv(1 << 16).startswith(b"HTTP/1.1 429")
        grown = memory_mib(gateway) - before
        upstream.rest = b""
        assert post(gateway, other, body_of()).status_code == 200
        gateway.close_session(token)
        upstream.go_on.set()
    assert grown < 70  # as objects, five take 80 MiB and more


def test_what_has_not_begun_ends_with_its_session(upstream: RawUpstream, gateway: Gateway, log: Path) -> None:
    upstream.answer, upstream.rest = answer(completion())[:-5], completion()[-5:]
    token = gateway.open_session(Budget(requests=10), name="closed", calls=1)
    running = upstream.sent(gateway, token, body_of("runs"))
    assert upstream.asked.acquire(timeout=60)
    queued = [upstream.sent(gateway, token, body_of("waits")) for _ in range(3)]
    late = upstream.connected(gateway, token)
    late.sendall(head_of(token, len(body_of())).replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"))
    assert late.recv(1 << 16).startswith(b"HTTP/1.1 100")  # its body is waited for
    late.sendall(body_of()[:5])
    until(lambda: gateway.usage(token).remaining.requests == 6)  # one runs and three wait
    path = gateway.socket_of(token)
    gateway.close_session(token)
    assert not path.exists()
    for connection in (*queued, late):
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 401")
    upstream.go_on.set()
    assert running.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert upstream.requests == 1
    logged = sorted((line["ending"], line.get("error", {}).get("status")) for line in lines(log, "closed"))
    assert logged == [("answered", None), *[("refused", 401)] * 3]


def test_parsing_refused_requests_takes_a_part_of_the_time(gateway: Gateway) -> None:
    loud = gateway.open_session(Budget(requests=0), name="loud")
    many_objects = body_of(user=[[]] * 60_000)
    post(gateway, loud, many_objects)  # fills what is logged of them
    started, used = time.monotonic(), cpu_s(gateway)
    assert {post(gateway, loud, many_objects).status_code for _ in range(3)} == {429}
    assert cpu_s(gateway) - used < 0.5 * (time.monotonic() - started)


def test_a_session_rests_after_parsing() -> None:
    async def turns() -> None:
        parsing = Parsing()
        for _ in range(3):
            async with parsing.turn():
                time.sleep(0.02)  # noqa: ASYNC251 - as parsing does

    started = time.monotonic()
    asyncio.run(turns())
    assert time.monotonic() - started > 3 * 0.02 + 2 * 4 * 0.02
