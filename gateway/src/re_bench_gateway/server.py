"""The gateway's process from its first message to its end."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from re_bench.errors import ReBenchError
from re_bench.guest.ipc import receive, send
from re_bench_gateway.app import application
from re_bench_gateway.calls import CallAccounting
from re_bench_gateway.connections import Connection
from re_bench_gateway.control import MAX_MESSAGE, answer_until_end, failure
from re_bench_gateway.listeners import Listeners, tcp_socket, unix_socket
from re_bench_gateway.log import CallLog
from re_bench_gateway.sessions import Sessions
from re_bench_gateway.settings import Settings
from re_bench_gateway.upstreams import open_upstream

if TYPE_CHECKING:
    import socket

    from re_bench_gateway.upstreams.protocol import Upstream

_GRACE_S = 1
_SPARE_FILES = 200  # of the limit on open files, for connections to the upstream and files; others get 503
_MOST_CONNECTIONS = 10_000
_KEEP_ALIVE_S = 60
_MAX_HEAD = 64 << 10


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
        upstream = open_upstream(settings)
        path = place / "socket"
        sockets.append(unix_socket(path))
        if settings.tcp:
            sockets.append(tcp_socket())
    except ReBenchError as error:
        send(channel, failure(error))
        return
    address = f"http://127.0.0.1:{sockets[1].getsockname()[1]}/v1" if settings.tcp else None
    send(channel, {"socket": str(path), "address": address, "token": sessions.main.token})
    try:
        server = _server(settings, accounting, upstream)
        await _until_the_end(server, sockets, channel, sessions, Listeners(server, place))
    finally:
        await upstream.close()


async def _until_the_end(
    server: uvicorn.Server,
    sockets: list[socket.socket],
    channel: socket.socket,
    sessions: Sessions,
    listeners: Listeners,
) -> None:
    async def control() -> None:
        try:
            await answer_until_end(channel, sessions, listeners)
        finally:
            listeners.close_all()
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
            http=_connection_class(settings),
            h11_max_incomplete_event_size=_MAX_HEAD,
            lifespan="off",
            ws="none",
            log_level="critical",  # the application tells of failures; connections that go are none
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_most_connections(),
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_notify=1,
            callback_notify=look_for_parent,
        )
    )
    return server


def _connection_class(settings: Settings) -> Any:
    """Return what uvicorn makes connections with."""
    return partial(Connection, most=settings.limits.connections, patience_s=settings.client_timeout_s)


def _most_connections() -> int:
    """Raise the limit on open files as far as we may, and return the connections that it leaves room for."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_CONNECTIONS + _SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files - _SPARE_FILES
