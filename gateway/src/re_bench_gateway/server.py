"""The gateway's process from its first message to its end."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from re_bench.errors import ReBenchError, UsageError
from re_bench.guest.ipc import receive, send
from re_bench_gateway.app import application
from re_bench_gateway.calls import CallAccounting
from re_bench_gateway.control import MAX_MESSAGE, answer_until_end, failure
from re_bench_gateway.log import CallLog
from re_bench_gateway.sessions import Sessions
from re_bench_gateway.settings import Settings
from re_bench_gateway.upstreams import open_upstream

if TYPE_CHECKING:
    from re_bench_gateway.upstreams.protocol import Upstream

_BACKLOG = 2048
_GRACE_S = 1
_MOST_CONNECTIONS = 900  # below the usual limit on open files; others get 503
_KEEP_ALIVE_S = 600


def run(channel: socket.socket) -> None:
    """Serve until the other end of the channel is closed, its process is gone, or SIGTERM comes."""
    message, _descriptors = receive(channel, MAX_MESSAGE, accept_descriptors=False)
    settings = Settings.model_validate(message["settings"])
    os.environ.update(message["environment"])
    with tempfile.TemporaryDirectory(prefix="re-bench-gateway-", ignore_cleanup_errors=True) as place:
        asyncio.run(_serve(settings, channel, Path(place)))


async def _serve(settings: Settings, channel: socket.socket, place: Path) -> None:
    sockets: list[socket.socket] = []
    try:
        log = CallLog(settings.log)
        sessions = Sessions(settings, log.spent_by(settings.resume))
        accounting = CallAccounting(sessions, log)
        upstream = open_upstream(settings.upstream)
        path = place / "socket"
        sockets.append(_unix_socket(path))
        if settings.tcp:
            sockets.append(_tcp_socket())
    except ReBenchError as error:
        send(channel, failure(error))
        return
    address = f"http://127.0.0.1:{sockets[1].getsockname()[1]}/v1" if settings.tcp else None
    send(channel, {"socket": str(path), "address": address, "token": sessions.main.token})
    try:
        await _until_the_end(_server(settings, accounting, upstream), sockets, channel, sessions)
    finally:
        await upstream.close()


async def _until_the_end(
    server: uvicorn.Server, sockets: list[socket.socket], channel: socket.socket, sessions: Sessions
) -> None:
    async def control() -> None:
        try:
            await answer_until_end(channel, sessions)
        finally:
            server.should_exit = True

    task = asyncio.create_task(control())
    try:
        await server.serve(sockets)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _server(settings: Settings, accounting: CallAccounting, upstream: Upstream) -> uvicorn.Server:
    parent = os.getppid()

    async def look_for_parent() -> None:
        # A process forked off ours may hold the channel open after its end.
        server.should_exit = server.should_exit or os.getppid() != parent

    server = uvicorn.Server(
        uvicorn.Config(
            application(settings, accounting, upstream),
            lifespan="off",
            ws="none",
            log_level="critical",  # the application tells of failures; connections that go are none
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_notify=1,
            callback_notify=look_for_parent,
        )
    )
    return server


def _unix_socket(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise UsageError(f"the gateway cannot listen on {path}: {error}; a shorter $TMPDIR may help") from None
    # The directory keeps others out; a sandbox that is shown the socket has a user id of its own.
    path.chmod(0o666)
    listener.listen(_BACKLOG)
    return listener


def _tcp_socket() -> socket.socket:
    listener = socket.socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    listener.listen(_BACKLOG)
    return listener
