"""The operator's socket: a Unix socket in the state directory, by which its owner speaks to the running server.

A connection sends one JSON object on a line and gets one back: ``{"do": "end", "session": NAME}`` ends a session.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from re_bench.data.files import short_path
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

_NAME = "operator.sock"
_MAX_LINE = 1 << 16
_REQUEST_S = 10.0
_RESPONSE_S = 120.0  # a session's end waits for its programs


class OperatorSocket:
    """Answers the operator's requests until it is closed."""

    def __init__(self, state: Path, operation: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]) -> None:
        """Prepare.

        Args:
            state: the state directory, which the server has locked.
            operation: what answers a request; a :class:`ReBenchError` of it is the answer, too.
        """
        self._state, self._operation = state, operation
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None] | None] = set()

    async def open(self) -> None:
        """Listen."""
        (self._state / _NAME).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        os.fchmod(listener.fileno(), 0o600)  # before there is a path, so that nobody else can ever connect
        with short_path(self._state) as directory:
            listener.bind(f"{directory}/{_NAME}")
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=_MAX_LINE)

    async def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
        connections = [task for task in self._connections if task is not None]
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        (self._state / _NAME).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            line = await asyncio.wait_for(reader.readline(), _REQUEST_S)
            if line:
                writer.write(json.dumps(await self._respond(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass  # who asked has gone, or sends no line
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._connections.discard(task)

    async def _respond(self, line: bytes) -> dict[str, Any]:
        try:
            message: Mapping[str, Any] = json.loads(line)
            return await self._operation(message)
        except ValueError:
            return {"error": "expected a line of JSON", "exit_status": UsageError.exit_status}
        except ReBenchError as error:
            return {"error": str(error), "exit_status": error.exit_status}
        except Exception as error:  # noqa: BLE001 - the operator learns that it failed
            return {"error": f"the server failed: {error!r}", "exit_status": ReBenchError.exit_status}


def ask(state: Path, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the running server's answer, or None if no server uses the state directory.

    Raises:
        UsageError: if the server refuses the request.
        ReBenchError: if it fails, or does not answer.
    """
    with connected(state) as connection:
        if connection is None:
            return None
        try:
            connection.settimeout(_RESPONSE_S)
            connection.sendall(json.dumps(message).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer: dict[str, Any] = json.loads(stream.readline())
        except (OSError, ValueError) as error:
            raise ReBenchError(f"{state}: the server there does not answer ({type(error).__name__})") from None
    if "error" in answer:
        kind = UsageError if answer.get("exit_status") == UsageError.exit_status else ReBenchError
        raise kind(answer["error"])
    return answer


def is_served(state: Path) -> bool:
    """Tell whether a server uses a state directory."""
    try:
        with connected(state) as connection:
            return connection is not None
    except UsageError:
        return True  # another user's


@contextmanager
def connected(state: Path) -> Iterator[socket.socket | None]:
    """Connect to the server that uses a state directory; gives None if there is none.

    Raises:
        UsageError: if the server is another user's.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            with short_path(state) as directory:
                connection.settimeout(_REQUEST_S)
                connection.connect(f"{directory}/{_NAME}")
        except PermissionError:
            raise UsageError(f"{state}: only the user who runs the server there may do this") from None
        except OSError:
            yield None
            return
        yield connection
