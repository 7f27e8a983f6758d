"""The outermost middleware around the SDK's application: access, request size, health, and a repair of streams.

It is plain ASGI: a middleware that buffers responses would hold up streams.
"""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

request_time: ContextVar[float] = ContextVar("request_time")
"""When the request came that is answered, by the monotonic clock."""

_HEALTH, _READY, _METRICS = "/health", "/ready", "/metrics"
_OK, _UNAUTHORIZED, _TOO_LARGE, _UNAVAILABLE = 200, 401, 413, 503
_MAX_DRAINED = 4  # times the longest request
_CHUNK_WITH_LEADING_SPACE = re.compile(r"(event: (?:chunk|end)\r?\ndata: )([^\S\r\n])")


class RequestTooLongError(Exception):
    """A request's body is longer than the server accepts."""


class AccessMiddleware:
    """What is served: checks token and length of each request, answers ``/health``, ``/ready`` and ``/metrics``."""

    def __init__(
        self,
        application: Application,
        *,
        token: str | None,
        body_bytes: int,
        health: Callable[[], dict[str, Any]],
        ready: Callable[[], bool],
        metrics: Application,
    ) -> None:
        """Wrap ``application``.

        Args:
            application: what answers all other requests.
            token: what clients must send as their API key; None if no key is needed.
            body_bytes: the longest request body.
            health: returns what ``/health`` answers to authorised clients.
            ready: tells what ``/ready`` answers to everybody.
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
        headers = dict(scope["headers"])
        authorized = self._authorized(headers)
        if scope["path"] == _HEALTH:
            # A process supervisor needs no token to see that the server is alive.
            await send_json(send, _OK, self._health() if authorized else {"status": "ok"})
        elif scope["path"] == _READY:
            ready = self._ready()
            await send_json(send, _OK if ready else _UNAVAILABLE, {"ready": ready})
        elif not authorized:
            detail = "this server needs its token as API key (header X-API-Key)"
            await send_json(send, _UNAUTHORIZED, {"detail": detail})
        elif scope["path"] == _METRICS:
            await self._metrics(scope, receive, send)
        else:
            await self._forward_bounded(scope, headers, receive, send)

    def _authorized(self, headers: dict[bytes, bytes]) -> bool:
        if self._token is None:
            return True
        _bearer, _space, authorization = headers.get(b"authorization", b"").partition(b" ")
        key = headers.get(b"x-api-key") or authorization
        return hmac.compare_digest(key, self._token)

    async def _forward_bounded(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Pass a request on, unless its header says or its body shows that it is too long."""
        limit = self._body_bytes
        content_length = headers.get(b"content-length", b"0")
        received, started = 0, False

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise RequestTooLongError
            return message

        async def send_repaired(message: Message) -> None:
            nonlocal started
            if received <= limit:  # else it is an answer to a body that was cut off
                started = True
                await send(_escape_leading_space(message))

        if content_length.isdigit() and int(content_length) <= limit:
            with suppress(RequestTooLongError):
                await self._application(scope, receive_counted, send_repaired)
            if started or received <= limit:
                return
        await _drain(receive, _MAX_DRAINED * limit)
        await send_json(send, _TOO_LARGE, {"detail": f"a request may hold {limit} bytes"})


async def send_json(
    send: Send, status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request with a JSON object."""
    body = json.dumps(content, allow_nan=False).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    encoded = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


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
