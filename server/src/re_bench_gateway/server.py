"""The gateway's process from its first message to its end."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from re_bench.errors import ReBenchError
from re_bench.guest.ipc import receive, send
from re_bench_gateway.app import application
from re_bench_gateway.calls import CallAccounting
from re_bench_gateway.control import MAX_MESSAGE, answer_until_end, failure
from re_bench_gateway.listeners import Listeners
from re_bench_gateway.log import CallLog
from re_bench_gateway.sessions import Sessions
from re_bench_gateway.settings import Settings
from re_bench_gateway.upstreams import open_upstream

if TYPE_CHECKING:
    import socket

    from re_bench_gateway.upstreams.protocol import Upstream

_GRACE_S = 1
_KEEP_ALIVE_S = 60
_MAX_HEAD = 64 << 10


def run(channel: socket.socket) -> None:
    """Serve until the other end of the channel is closed, its process is gone, or SIGTERM comes."""
    message, _descriptors = receive(channel, MAX_MESSAGE, accept_descriptors=False)
    settings = Settings.model_validate(message["settings"])
    os.environ.update(message["environment"])
    with tempfile.TemporaryDirectory(prefix="re-bench-server-", ignore_cleanup_errors=True) as place:
        asyncio.run(_serve(settings, channel, Path(place)))


async def _serve(settings: Settings, channel: socket.socket, place: Path) -> None:
    try:
        log = CallLog(settings.log)
        sessions = Sessions(settings, log.spent_by(settings.resume))
        accounting = CallAccounting(sessions, log)
        upstream = open_upstream(settings)
        listeners = Listeners(settings, place)
        path = listeners.open()
        address = listeners.open_tcp() if settings.tcp else None
    except ReBenchError as error:
        send(channel, failure(error))
        return
    send(channel, {"socket": str(path), "address": address, "token": sessions.main.token})
    try:
        await _until_the_end(_Server(settings, accounting, upstream, listeners), channel, sessions, listeners)
    finally:
        await upstream.close()


async def _until_the_end(server: _Server, channel: socket.socket, sessions: Sessions, listeners: Listeners) -> None:
    async def control() -> None:
        try:
            await answer_until_end(channel, sessions, listeners)
        finally:
            server.should_exit = True

    task = asyncio.create_task(control())
    try:
        await server.serve(sockets=[])
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class _Server(uvicorn.Server):
    """uvicorn's server on sockets of ours, until its parent is gone."""

    def __init__(
        self, settings: Settings, accounting: CallAccounting, upstream: Upstream, listeners: Listeners
    ) -> None:
        self._parent, self._listeners = os.getppid(), listeners
        super().__init__(
            uvicorn.Config(
                application(settings, accounting, upstream),
                http="h11",
                h11_max_incomplete_event_size=_MAX_HEAD,
                lifespan="off",
                ws="none",
                log_level="critical",  # the application tells of failures; connections that go are none
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_GRACE_S,
                timeout_notify=1,
                callback_notify=self._look_for_parent,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._listeners.serve(self)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections and end those there are."""
        self._listeners.close_all()
        await super().shutdown(sockets)

    async def _look_for_parent(self) -> None:
        # A process forked off ours may hold the channel open after its end.
        self.should_exit = self.should_exit or os.getppid() != self._parent
