"""The program that is the proxy: one process for all sessions of a server, which tells it about each.

``python -c PROGRAM CHANNEL`` serves until the server's end of the channel is closed. A session's listening socket and
its log come as file descriptors, so that the program needs no file of the server's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from re_bench.guest import ipc
from re_bench_server.network.allow_list import AllowList
from re_bench_server.network.requests import serve
from re_bench_server.network.traffic import Traffic

_MAX_MESSAGE = 1 << 20


@dataclass
class _Session:
    server: asyncio.Server
    traffic: Traffic
    clients: set[asyncio.Task[None]] = field(default_factory=set)


class Proxy:
    """The sessions, and the channel to the server."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sessions: dict[str, _Session] = {}

    async def run(self) -> None:
        """Do what the server asks for, until it is gone."""
        while True:
            try:
                message, descriptors = await asyncio.to_thread(
                    ipc.receive, self._channel, _MAX_MESSAGE, accept_descriptors=True
                )
            except (ipc.FrameError, OSError):
                return
            if "open" in message:
                await self._open(message, *descriptors)
            else:
                await self._close(message["close"])
            ipc.send(self._channel, {"done": True})

    async def _open(self, message: dict[str, Any], listener: int, log: int) -> None:
        traffic = Traffic(AllowList(message["allow"]), message["limit_mib"], message["used_bytes"], log)
        clients: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            clients.add(task)
            task.add_done_callback(clients.discard)
            with suppress(asyncio.CancelledError):  # by _close, and asyncio would report it
                await serve(traffic, reader, writer)

        server = await asyncio.start_unix_server(accept, sock=socket.socket(fileno=listener), backlog=512)
        self._sessions[message["open"]] = _Session(server, traffic, clients)

    async def _close(self, name: str) -> None:
        """End a session's connections; all of them are in its log then."""
        session = self._sessions.pop(name, None)
        if session is None:
            return
        session.server.close()
        for client in list(session.clients):
            client.cancel()
        await asyncio.gather(*session.clients, return_exceptions=True)
        session.traffic.close()


def main() -> None:
    """Serve the channel whose descriptor the command line names."""
    sys.unraisablehook = lambda _exception: None  # of names in TLS that are not ASCII, which are refused
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        asyncio.run(Proxy(channel).run())
    os._exit(0)  # a look-up of a name may go on in a thread
