"""The control channel: how the process that started a gateway talks to it. A client cannot reach it.

Both ends are of one socket pair, so that the end of either process is seen by the other. A message is a frame of
:mod:`re_bench.guest.ipc`; each gets one answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.guest.ipc import HEADER, decode, encode
from re_bench_gateway.settings import Budget

if TYPE_CHECKING:
    import socket

    from re_bench_gateway.listeners import Listeners
    from re_bench_gateway.sessions import Sessions

MAX_MESSAGE = 16 << 20


async def answer_until_end(channel: socket.socket, sessions: Sessions, listeners: Listeners) -> None:
    """Answer what comes over the channel until its other end is closed."""
    channel.setblocking(False)  # noqa: FBT003 - its only argument
    reader, writer = await asyncio.open_connection(sock=channel)
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            length, _descriptors = HEADER.unpack(await reader.readexactly(HEADER.size))
            message = decode(await reader.readexactly(length))
            try:
                answer = _done(message, sessions, listeners)
            except ReBenchError as error:
                answer = failure(error)
            writer.write(encode(answer))


def failure(error: ReBenchError) -> dict[str, Any]:
    """Return the answer to what failed."""
    return {"error": str(error), "exit_status": error.exit_status}


def _done(message: dict[str, Any], sessions: Sessions, listeners: Listeners) -> dict[str, Any]:
    match message:
        case {"do": "open", "name": name, "budget": budget, "key": key, "calls": calls}:
            path = listeners.open()
            try:
                session = sessions.open(name, Budget.model_validate(budget), key, calls)
            except ReBenchError:
                listeners.close(path)
                raise
            session.socket = path
            return {"token": session.token, "socket": str(path)}
        case {"do": "close", "token": token}:
            session = sessions.close(token)
            assert session.socket is not None
            listeners.close(session.socket)
        case {"do": "usage", "token": token}:
            session = sessions.known(token)
        case _:
            raise ReBenchError("the gateway does not know this message")
    return session.usage(priced=sessions.priced()).model_dump(mode="json")
