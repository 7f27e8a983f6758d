"""What stands before the SDK's application: who may call, how much a request may hold, health, and a repair.

All of it is ASGI by hand, because a middleware that buffers would hold up streams.
"""

from __future__ import annotations

import hmac
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from re_bench_environment.replying import reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench_environment.replying import Application, Message, Receive, Scope, Send

__all__ = ["Front"]

_HEALTH = "/health"
_DRAINED = 4  # times the longest request
_PIECE = re.compile(r"(event: (?:chunk|end)\r?\ndata: )([^\S\r\n])")


class TooLongError(Exception):
    """A request holds more than it may."""


class Front:
    """The application that is served, around the SDK's."""

    def __init__(
        self, application: Application, *, token: str | None, body_bytes: int, health: Callable[[], dict[str, Any]]
    ) -> None:
        """Wrap ``application``.

        Args:
            application: the SDK's.
            token: what clients must send as their API key; None if anybody may call.
            body_bytes: the longest request.
            health: returns what ``/health`` says to those who may call.
        """
        self._application = application
        self._token = None if token is None else token.encode()
        self._body_bytes = body_bytes
        self._health = health

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = dict(scope["headers"])
        allowed = self._allowed(headers)
        if scope["path"] == _HEALTH:
            # Whoever watches over processes needs no token to see that this one lives.
            await reply(send, 200, self._health() if allowed else {"status": "ok"})
        elif not allowed:
            await reply(send, 401, {"detail": "this server wants its token as API key (header X-API-Key)"})
        else:
            await self._bounded(scope, headers, receive, send)

    def _allowed(self, headers: dict[bytes, bytes]) -> bool:
        if self._token is None:
            return True
        _bearer, _space, authorization = headers.get(b"authorization", b"").partition(b" ")
        given = headers.get(b"x-api-key") or authorization
        return hmac.compare_digest(given, self._token)

    async def _bounded(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Pass a request on, unless it says or turns out to be too long."""
        most = self._body_bytes
        length = headers.get(b"content-length", b"0")
        seen, began = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise TooLongError
            return message

        async def sent(message: Message) -> None:
            nonlocal began
            if seen <= most:  # else it is about what was cut off
                began = True
                await send(_repaired(message))

        if length.isdigit() and int(length) <= most:
            with suppress(TooLongError):
                await self._application(scope, counted, sent)
            if began or seen <= most:
                return
        await _drained(receive, _DRAINED * most)
        await reply(send, 413, {"detail": f"a request may hold {most} bytes"})


async def _drained(receive: Receive, most: int) -> None:
    """Take in more of a request, at most so many bytes, since many clients read an answer only when all is sent."""
    while most > 0:
        message = await receive()
        most -= len(message.get("body", b""))
        if not message.get("more_body"):
            return


def _repaired(message: Message) -> Message:
    """Spell white space at the beginning of a piece of a streamed result in JSON's other way.

    Both official clients strip it there, and results arrive in pieces of 4096 characters cut anywhere. It can only be
    within a string, since JSON without indentation has no other.
    """
    if message["type"] == "http.response.body" and message.get("body", b"").startswith(b"event: "):
        text = message["body"].decode()
        match = _PIECE.match(text)
        if match:
            message["body"] = f"{match[1]}\\u{ord(match[2]):04x}{text[match.end() :]}".encode()
    return message
