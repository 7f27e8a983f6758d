"""The sockets of a gateway: its own, and one for each session, so that none takes the connections of another."""

from __future__ import annotations

import asyncio
import itertools
import resource
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench_gateway.connections import Connection

if TYPE_CHECKING:
    import uvicorn

    from re_bench_gateway.settings import Settings

_BACKLOG = 2048
_NO_DESCRIPTORS_S = 0.2  # until descriptors may be free again
_SPARE_FILES = 200  # of the limit on open files, for sockets of sessions, connections to the upstream and files
_MOST_CONNECTIONS = 10_000


@dataclass
class _Listener:
    socket: socket.socket
    room: asyncio.Semaphore
    accepting: asyncio.Task[None] | None = None


class Listeners:
    """Listening sockets, each with a bound on its open connections: one that has as many accepts none until one ends.

    Connections are accepted one by one, so that a client that makes many does not hold up what else there is to do.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        """Prepare; sockets that are opened before :meth:`serve` let clients wait.

        Raises:
            UsageError: if the limit on open files leaves no room for connections.
        """
        self._settings, self._directory = settings, directory
        self._open: dict[object, _Listener] = {}
        """By their addresses."""
        self._numbers = itertools.count()
        self._most = _most_connections()
        self._all = asyncio.Semaphore(self._most)
        self._server: uvicorn.Server | None = None

    def open(self) -> Path:
        """Listen on a new Unix socket.

        Raises:
            ReBenchError: if the system refuses.
        """
        listener = _unix_socket(self._directory / str(next(self._numbers)))
        self._add(listener, self._settings.limits.connections)
        return Path(listener.getsockname())

    def open_tcp(self) -> str:
        """Listen on a port of 127.0.0.1, which sandboxes do not reach and scorers share, and return the base URL."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._add(listener, self._most - self._most // 2)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    def serve(self, server: uvicorn.Server) -> None:
        """Let a server answer the connections."""
        self._server = server
        for listener in self._open.values():
            listener.accepting = asyncio.create_task(self._accept(listener, server))

    def close(self, path: Path) -> None:
        """Remove a socket; its open connections go on."""
        self._close(str(path))
        path.unlink(missing_ok=True)

    def close_all(self) -> None:
        """Accept no more connections."""
        for address in tuple(self._open):
            self._close(address)

    def _close(self, address: object) -> None:
        listener = self._open.pop(address, None)
        if listener is None:  # we are ending
            return
        if listener.accepting is None:
            listener.socket.close()
        else:
            listener.accepting.cancel()

    def _add(self, listening: socket.socket, most: int) -> None:
        listening.setblocking(False)  # noqa: FBT003 - its only argument
        self._open[listening.getsockname()] = listener = _Listener(listening, asyncio.Semaphore(most))
        if self._server is not None:
            listener.accepting = asyncio.create_task(self._accept(listener, self._server))

    async def _accept(self, listener: _Listener, server: uvicorn.Server) -> None:
        loop = asyncio.get_running_loop()
        with listener.socket:
            while True:
                await listener.room.acquire()
                try:
                    client, _address = await loop.sock_accept(listener.socket)
                except OSError:  # no descriptors are left, or the client has gone
                    listener.room.release()
                    await asyncio.sleep(_NO_DESCRIPTORS_S)
                    continue
                try:
                    await self._all.acquire()
                except asyncio.CancelledError:
                    client.close()
                    raise
                await loop.connect_accepted_socket(partial(self._connection, listener, server), client)

    def _connection(self, listener: _Listener, server: uvicorn.Server) -> Connection:
        def lost() -> None:
            self._all.release()
            listener.room.release()

        return Connection(server, patience_s=self._settings.client_timeout_s, lost=lost)


def _unix_socket(path: Path) -> socket.socket:
    try:
        listener = socket.socket(socket.AF_UNIX)
    except OSError as error:
        raise ReBenchError(f"the gateway cannot open a socket: {error.strerror}") from None
    try:
        listener.bind(str(path))
        # The directory keeps others out; a sandbox that is shown the socket has a user id of its own.
        path.chmod(0o666)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(f"the gateway cannot listen on {path}: {error}; a shorter $TMPDIR may help") from None
    return listener


def _most_connections() -> int:
    """Raise the limit on open files as far as we may, and return the connections that it leaves room for."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_CONNECTIONS + _SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    if files <= _SPARE_FILES:
        raise UsageError(f"the gateway needs more than {_SPARE_FILES} open files and may have {hard}; see `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files - _SPARE_FILES
