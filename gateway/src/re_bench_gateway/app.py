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

from re_bench_gateway.calls import Call
from re_bench_gateway.errors import ApiError, UpstreamError, bad_request, ending, internal, unknown_model, unknown_url
from re_bench_gateway.redaction import redacted
from re_bench_gateway.requests import parse_request
from re_bench_gateway.streaming import DONE, event, to_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from re_bench_gateway.calls import CallAccounting
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
        body = await _bounded_body(request, self._settings.max_body_bytes)
        fields = parse_request(body)
        with Call(self._accounting, session, fields, len(body)) as call:
            await call.reserve()
            async with self._upstream.ask(call.upstream_request, call.state) as answer:
                if not isinstance(answer, dict):
                    await _stream(call, answer, request.receive, send)
                    return
            call.answered(answer)
        reply = _whole_stream(call, answer) if fields.get("stream") else _json(answer)
        reply.headers["x-request-id"] = call.id
        await reply(request.scope, request.receive, send)


async def _stream(call: Call, events: AsyncGenerator[list[bytes], None], receive: Receive, send: Send) -> None:
    """Pass a stream on as it comes. The call is settled and logged before the client can see the end."""
    headers = [*_STREAM_HEADERS, (b"x-request-id", call.id.encode())]
    watcher = asyncio.create_task(_cancel_on_disconnect(receive, asyncio.current_task()))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(events):
            async for batch in events:
                passed = b"".join(event(_clean(data, call)) for raw in batch if (data := call.add(raw)) is not None)
                if passed:
                    await send({"type": "http.response.body", "body": passed, "more_body": True})
        call.streamed()
        await send({"type": "http.response.body", "body": event(DONE), "more_body": False})
    except UpstreamError as error:
        call.streamed("upstream_error")
        await send({"type": "http.response.body", "body": _error_event(error), "more_body": False})
    except asyncio.CancelledError:
        call.streamed("disconnected")
        if not watcher.done():  # not the client's doing: we are ending
            await send({"type": "http.response.body", "body": _error_event(ending()), "more_body": False})
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


async def _cancel_on_disconnect(receive: Receive, task: asyncio.Task[None] | None) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None:
        task.cancel()


def _clean(data: bytes, call: Call) -> bytes:
    """Return data for a client: an error in the middle of a stream may quote a key."""
    if b'"error"' not in data:
        return data
    return redacted(data.decode(errors="replace"), call.secrets, similar=True).encode()


def _error_event(error: ApiError) -> bytes:
    return event(json.dumps(error.body).encode())


def _whole_stream(call: Call, completion: dict[str, Any]) -> Response:
    """Return the stream of a completion that is there in one piece."""
    chunks = to_chunks(completion, include_usage=call.wants_usage)
    text = b"".join(event(json.dumps(chunk, separators=(",", ":")).encode()) for chunk in chunks)
    return Response(text + event(DONE), media_type="text/event-stream", headers={"cache-control": "no-cache"})


async def _bounded_body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise bad_request(f"The body of a request may have at most {most} bytes.")
    return bytes(body)


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
