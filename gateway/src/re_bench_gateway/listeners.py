"""The sockets of a gateway: its own, and one for each session, so that none takes the connections of another."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from typing import TYPE_CHECKING

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import uvicorn

_BACKLOG = 2048


class Listeners:
    """The sockets of sessions, which a running server serves too."""

    def __init__(self, server: uvicorn.Server, directory: Path) -> None:
        self._server, self._directory = server, directory
        self._open: dict[str, asyncio.Server] = {}

    async def open(self, token: str) -> Path:
        """Listen for the session with a token.

        Raises:
            UsageError: if the path is too long for a socket.
        """
        path = self._path(token)
        config, loop = self._server.config, asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            make = config.http_protocol_class
            return make(config=config, server_state=self._server.server_state, app_state={}, _loop=loop)  # type: ignore[call-arg]

        self._open[token] = await loop.create_unix_server(connection, sock=unix_socket(path), backlog=_BACKLOG)
        return path

    def close(self, token: str) -> None:
        """Listen for this session no more; its open connections go on."""
        self._open.pop(token).close()
        self._path(token).unlink(missing_ok=True)

    def close_all(self) -> None:
        """Listen no more."""
        for token in tuple(self._open):
            self.close(token)

    def _path(self, token: str) -> Path:
        return self._directory / hashlib.sha256(token.encode()).hexdigest()[:12]


def unix_socket(path: Path) -> socket.socket:
    """Return a listening socket.

    Raises:
        UsageError: if the path is too long for one.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        raise UsageError(f"the gateway cannot listen on {path}: {error}; a shorter $TMPDIR may help") from None
    # The directory keeps others out; a sandbox that is shown the socket has a user id of its own.
    path.chmod(0o666)
    listener.listen(_BACKLOG)
    return listener


def tcp_socket() -> socket.socket:
    """Return a listening socket of 127.0.0.1."""
    listener = socket.socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    listener.listen(_BACKLOG)
    return listener
