"""The outermost middleware around the SDK's application: access, request size, health, and a repair of streams.

It is plain ASGI: a middleware that buffers responses would hold up streams.
"""

from __future__ import annotations

import hmac
import re
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

request_time: ContextVar[float] = ContextVar("request_time")
"""When the request came that is answered, by the monotonic clock."""

_OK, _UNAUTHORIZED, _LENGTH_REQUIRED, _TOO_LARGE, _UNAVAILABLE = 200, 401, 411, 413, 503
_MAX_DRAINED = 4  # times the longest request
_CHUNK_WITH_LEADING_SPACE = re.compile(r"(event: (?:chunk|end)\r?\ndata: )([^\S\r\n])")


class AccessMiddleware:
    """Checks token and length of each request, and answers ``/health``, ``/ready`` and ``/metrics``."""

    def __init__(
        self,
        application: ASGIApp,
        *,
        token: str | None,
        body_bytes: int,
        health: Callable[[], dict[str, Any]],
        ready: Callable[[], bool],
        metrics: ASGIApp,
    ) -> None:
        """Wrap ``application``.

        Args:
            application: answers all other requests.
            token: what clients must send as their API key; None if no key is needed.
            body_bytes: the longest request body.
            health: returns what ``/health`` answers to authorised clients.
            ready: returns what ``/ready`` answers to everybody.
            metrics: answers ``/metrics`` to authorised clients.
        """
        self._application = application
        self._token = None if token is None else token.encode()
        self._body_bytes = body_bytes
        self._health, self._ready, self._metrics = health, ready, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        request_time.set(time.monotonic())
        answer = await self._own_answer(scope, dict(scope["headers"]), receive)

        async def send_repaired(message: Message) -> None:
            await send(_escape_leading_space(message))

        await (answer or self._application)(scope, receive, send_repaired)

    async def _own_answer(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> ASGIApp | None:
        """Return the answer to a request that does not reach the wrapped application."""
        authorized, path = self._authorized(headers), scope["path"]
        if path == "/health":  # a process supervisor needs no token to see that the server is alive
            return JSONResponse(self._health() if authorized else {"status": "ok"})
        if path == "/ready":
            ready = self._ready()
            return JSONResponse({"ready": ready}, _OK if ready else _UNAVAILABLE)
        if not authorized:
            detail = "this server needs its token as API key (header X-API-Key)"
            return JSONResponse({"detail": detail}, _UNAUTHORIZED)
        if path == "/metrics":
            return self._metrics
        return await self._refusal(headers, receive)

    async def _refusal(self, headers: dict[bytes, bytes], receive: Receive) -> ASGIApp | None:
        """Return the answer to a request that may be too long; None if it is not."""
        length, limit = headers.get(b"content-length", b"0"), self._body_bytes
        if length.isdigit() and int(length) <= limit and b"transfer-encoding" not in headers:
            return None
        await _drain(receive, _MAX_DRAINED * limit)
        if b"transfer-encoding" in headers:
            return JSONResponse({"detail": "a request must have a Content-Length"}, _LENGTH_REQUIRED)
        return JSONResponse({"detail": f"a request may hold {limit} bytes"}, _TOO_LARGE)

    def _authorized(self, headers: dict[bytes, bytes]) -> bool:
        if self._token is None:
            return True
        _bearer, _space, authorization = headers.get(b"authorization", b"").partition(b" ")
        key = headers.get(b"x-api-key") or authorization
        return hmac.compare_digest(key, self._token)


async def _drain(receive: Receive, limit: int) -> None:
    """Read more of a request, at most ``limit`` bytes: many clients read the response only when all is sent."""
    while limit > 0:
        message = await receive()
        limit -= len(message.get("body", b""))
        if not message.get("more_body"):
            return


def _escape_leading_space(message: Message) -> Message:
    r"""Replace white space at the beginning of a chunk of a streamed result by its ``\u`` escape.

    Both official clients strip it there, and results are split into chunks of 4096 characters at any place. It can only
    be within a string, since JSON without indentation has no other white space there.
    """
    if message["type"] == "http.response.body" and message.get("body", b"").startswith(b"event: "):
        text = message["body"].decode()
        match = _CHUNK_WITH_LEADING_SPACE.match(text)
        if match:
            message["body"] = f"{match[1]}\\u{ord(match[2]):04x}{text[match.end() :]}".encode()
    return message
