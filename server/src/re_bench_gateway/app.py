"""The routes."""

from __future__ import annotations

import asyncio
import json
import traceback
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from re_bench_gateway.calls import Call
from re_bench_gateway.errors import ApiError, bad_request, error_body, internal, unknown_model
from re_bench_gateway.streams import event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Message, Receive, Scope, Send

    from re_bench_gateway.log import CallLog
    from re_bench_gateway.sessions import Session, Sessions
    from re_bench_gateway.settings import Settings
    from re_bench_gateway.upstreams import OpenAIServer, PlugInUpstream


def application(
    settings: Settings, sessions: Sessions, log: CallLog, upstream: OpenAIServer | PlugInUpstream
) -> Starlette:
    """Return the ASGI application of a gateway."""

    async def models(request: Request) -> Response:
        sessions.authenticated(request.headers.get("authorization"))
        return _json({"object": "list", "data": [_model(name) for name in sessions.models]})

    async def model(request: Request) -> Response:
        sessions.authenticated(request.headers.get("authorization"))
        name = request.path_params["name"]
        if name not in sessions.models:
            raise unknown_model(name)
        return _json(_model(name))

    return Starlette(
        routes=[
            Route("/v1/chat/completions", _ChatCompletions(settings, sessions, log, upstream), methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{name:path}", model, methods=["GET"]),
        ],
        exception_handlers={ApiError: _on_api_error, HTTPException: _on_no_route},
    )


class _ChatCompletions:
    """The one route that costs. An ASGI application, so that a call is over when this returns, not before."""

    def __init__(
        self, settings: Settings, sessions: Sessions, log: CallLog, upstream: OpenAIServer | PlugInUpstream
    ) -> None:
        self._settings, self._sessions, self._log, self._upstream = settings, sessions, log, upstream
        self._slots = asyncio.Semaphore(settings.upstream.concurrency)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_soon(message: Message) -> None:
            nonlocal begun
            begun = True
            async with asyncio.timeout(self._settings.client_timeout_s):
                await send(message)

        try:
            await self._answer(Request(scope, receive), send_soon)
        except (ClientDisconnect, TimeoutError):  # the client has gone, or does not read
            return
        except ApiError as error:
            await _error_response(error)(scope, receive, send)
        except asyncio.CancelledError:
            ended = internal("the gateway has ended", 503)
            if begun:
                await send({"type": "http.response.body", "body": event(ended.body)})
            else:
                await _error_response(ended)(scope, receive, send)
        except Exception:  # noqa: BLE001 - the client gets an error in the shape that it knows, and no detail
            traceback.print_exc()
            await _error_response(internal())(scope, receive, send)

    async def _answer(self, request: Request, send: Send) -> None:
        session = self._sessions.authenticated(request.headers.get("authorization"))
        async with self._body(request, session) as body:
            with Call(self._sessions, self._log, session, body) as call:
                await call.reserve()
                async with session.slots, self._slots:
                    session.check_open()
                    async with self._upstream.ask(call.upstream_request(), call.state) as answer:
                        if not isinstance(answer, dict):
                            events = call.events(answer)
                            stream = StreamingResponse(events, 200, call.headers, "text/event-stream")
                            await stream(request.scope, request.receive, send)
                            return
                response = call.answered(answer)
        await response(request.scope, request.receive, send)

    @asynccontextmanager
    async def _body(self, request: Request, session: Session) -> AsyncIterator[bytes]:
        """Yield the body of a request, bounded in size and time, and counted while the block lasts."""
        most, all_most, body = self._settings.max_body_bytes, session.limits.request_bytes, bytearray()
        try:
            try:
                async with asyncio.timeout(self._settings.client_timeout_s):
                    async for piece in request.stream():
                        body += piece
                        session.request_bytes += len(piece)
                        if len(body) > most:
                            raise bad_request(f"The body of a request may have at most {most} bytes.")
                        if session.request_bytes > all_most:
                            message = f"The requests of this key that wait or run have more than {all_most} bytes."
                            raise ApiError(429, error_body(message, "requests", code="rate_limit_exceeded"))
            except TimeoutError:
                message = "The body of the request did not arrive in time."
                raise bad_request(message, code="request_timeout", status=408) from None
            yield bytes(body)
        finally:
            session.request_bytes -= len(body)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "re-bench"}


def _json(value: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value, separators=(",", ":")), status, headers, "application/json")


def _error_response(error: ApiError) -> Response:
    return _json(error.body, error.status, error.headers)


async def _on_api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error_response(error)


async def _on_no_route(request: Request, _error: Exception) -> Response:
    message = f"Unknown request URL: {request.method} {request.url.path[:200]}"
    return _error_response(bad_request(message, code="unknown_url", status=404))
