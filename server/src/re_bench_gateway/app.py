"""The routes."""

from __future__ import annotations

import asyncio
import json
import traceback
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from re_bench.data.redaction import redacted_value
from re_bench_gateway.calls import Call
from re_bench_gateway.errors import (
    ApiError,
    UpstreamError,
    bad_request,
    ending,
    internal,
    too_slow,
    unknown_model,
    unknown_url,
)
from re_bench_gateway.streaming import DONE, event, to_chunks
from re_bench_gateway.upstreams.protocol import CallState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from starlette.types import Receive, Scope, Send

    from re_bench_gateway.calls import CallAccounting
    from re_bench_gateway.sessions import Request as CountedRequest
    from re_bench_gateway.settings import Settings
    from re_bench_gateway.upstreams.protocol import Upstream

_STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


def application(settings: Settings, accounting: CallAccounting, upstream: Upstream) -> Starlette:
    """Return the ASGI application of a gateway."""
    models = _Models(accounting)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", _ChatCompletions(settings, accounting, upstream), methods=["POST"]),
            Route("/v1/models", models.all, methods=["GET"]),
            Route("/v1/models/{name:path}", models.one, methods=["GET"]),
        ],
        exception_handlers={ApiError: _on_api_error, HTTPException: _on_no_route},
    )


class _Models:
    """What clients may ask for."""

    def __init__(self, accounting: CallAccounting) -> None:
        self._sessions = accounting.sessions

    async def all(self, request: Request) -> Response:
        """List the models."""
        self._sessions.authenticated(request.headers.get("authorization"))
        return _json({"object": "list", "data": [_model(name) for name in self._sessions.models]})

    async def one(self, request: Request) -> Response:
        """Return one model."""
        self._sessions.authenticated(request.headers.get("authorization"))
        name = request.path_params["name"]
        if name not in self._sessions.models:
            raise unknown_model(name)
        return _json(_model(name))


class _ChatCompletions:
    """The one route that costs. An ASGI application, so that a call is over when this returns, not before."""

    def __init__(self, settings: Settings, accounting: CallAccounting, upstream: Upstream) -> None:
        self._settings, self._accounting, self._upstream = settings, accounting, upstream
        self._slots = asyncio.Semaphore(settings.upstream.concurrency)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(Request(scope, receive), send)
        except ClientDisconnect:
            return
        except ApiError as error:
            await _error_response(error)(scope, receive, send)
        except asyncio.CancelledError:
            await _error_response(ending())(scope, receive, send)
        except Exception:  # noqa: BLE001 - the client gets an error in the shape that it knows, and no detail
            traceback.print_exc()
            await _error_response(internal())(scope, receive, send)

    async def _answer(self, request: Request, send: Send) -> None:
        session = self._accounting.sessions.authenticated(request.headers.get("authorization"))
        state = CallState(key=session.key)
        with session.calling(state) as counted:
            body = await self._body(request, counted)
            async with session.parsing.turn():
                call = Call(self._accounting, session, body, state)
            with call:
                await call.reserve()
                async with session.slots, self._slots, self._upstream.ask(call.upstream_request(), state) as answer:
                    if not isinstance(answer, dict):
                        await _stream(call, answer, request.receive, send)
                        return
                call.answered(answer)
        answer = redacted_value(answer, call.keys)
        reply = _whole_stream(call, answer) if call.wants_stream else _json(answer)
        reply.headers["x-request-id"] = call.id
        await reply(request.scope, request.receive, send)

    async def _body(self, request: Request, counted: CountedRequest) -> bytes:
        """Return the body of a request, bounded in size and time."""
        most, body = self._settings.max_body_bytes, bytearray()
        try:
            async with asyncio.timeout(self._settings.client_timeout_s):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        raise bad_request(f"The body of a request may have at most {most} bytes.")
                    counted.grow(len(piece))
        except TimeoutError:
            raise too_slow("The body of the request did not arrive in time.") from None
        return bytes(body)


async def _stream(call: Call, events: AsyncGenerator[list[bytes], None], receive: Receive, send: Send) -> None:
    """Pass a stream on as it comes. The call is settled and logged before the client can see the end."""
    headers = [*_STREAM_HEADERS, (b"x-request-id", call.id.encode())]
    watcher = asyncio.create_task(_cancel_on_disconnect(receive, asyncio.current_task()))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(events):
            async for batch in events:
                for data in batch:
                    call.add(data)
                if passed := _events(call.chunks.take()):
                    await send({"type": "http.response.body", "body": passed, "more_body": True})
        call.streamed()
        await _end(send, call, event(DONE))
    except UpstreamError as error:
        call.streamed("upstream_error")
        await _end(send, call, _error_event(error))
    except asyncio.CancelledError:
        call.streamed("disconnected")
        if not watcher.done():  # not the client's doing: we are ending
            await _end(send, call, _error_event(ending()))
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


async def _cancel_on_disconnect(receive: Receive, task: asyncio.Task[None] | None) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None:
        task.cancel()


async def _end(send: Send, call: Call, last: bytes) -> None:
    await send({"type": "http.response.body", "body": _events(call.chunks.rest()) + last, "more_body": False})


def _events(chunks: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(event(json.dumps(chunk, separators=(",", ":")).encode()) for chunk in chunks)


def _error_event(error: ApiError) -> bytes:
    return event(json.dumps(error.body).encode())


def _whole_stream(call: Call, completion: dict[str, Any]) -> Response:
    """Return the stream of a completion that is there in one piece."""
    text = _events(to_chunks(completion, include_usage=call.wants_usage))
    return Response(text + event(DONE), media_type="text/event-stream", headers={"cache-control": "no-cache"})


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "re-bench"}


def _json(value: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(value, separators=(",", ":"))
    return Response(text, status, headers, media_type="application/json")


def _error_response(error: ApiError) -> Response:
    return _json(error.body, error.status, error.headers)


async def _on_api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error_response(error)


async def _on_no_route(request: Request, _error: Exception) -> Response:
    return _error_response(unknown_url(request.method, request.url.path))
