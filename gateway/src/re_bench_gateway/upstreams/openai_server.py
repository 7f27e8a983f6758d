"""A server that speaks OpenAI's API: retried, bounded, its errors passed on without keys."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from re_bench_gateway.errors import UpstreamError, error_body
from re_bench_gateway.redaction import redacted
from re_bench_gateway.streaming import DONE, EventReader
from re_bench_gateway.upstreams.retries import FailedAttemptError, is_retryable, requested_pause, retrying

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from re_bench_gateway.settings import OpenAICompatible
    from re_bench_gateway.upstreams.protocol import Answer, CallState

_OK = 200
_ERRORS = range(400, 600)
_BAD_GATEWAY = 502
_CONNECT_S = 15.0
_DRAIN_S = 1.0
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class OpenAIServer:
    """Any server with ``POST {base_url}/chat/completions``."""

    def __init__(self, settings: OpenAICompatible) -> None:
        self._settings = settings
        self._url = f"{settings.base_url.rstrip('/')}/chat/completions"
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.concurrency),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": "identity", "user-agent": "re-bench"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=settings.timeout_s),
            trust_env=True,  # proxies
        )

    @asynccontextmanager
    async def ask(self, request: dict[str, Any], state: CallState) -> AsyncIterator[Answer]:
        """Ask the server, again if that may help; a call keeps its slot while it waits, which slows all down."""
        body = json.dumps(request, separators=(",", ":")).encode("ascii")
        headers = {"content-type": "application/json"}
        if state.key:
            headers["authorization"] = f"Bearer {state.key}"
        async with self._slots:
            answer, response = await self._answered(body, headers, state, stream=bool(request.get("stream")))
            try:
                yield answer
            finally:
                response.close()  # which keeps the connection, if the answer was read to its end

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _answered(
        self, body: bytes, headers: dict[str, str], state: CallState, *, stream: bool
    ) -> tuple[Answer, aiohttp.ClientResponse]:
        """Try until there is an answer, or for a stream its beginning."""
        try:
            async for attempt in retrying(self._settings):
                with attempt:
                    state.retries = attempt.retry_state.attempt_number - 1
                    try:
                        return await self._attempt(body, headers, state, stream=stream)
                    except FailedAttemptError:
                        state.begun = False  # so that a client that leaves during the pause pays nothing
                        raise
        except FailedAttemptError as failed:
            raise failed.final from None
        raise AssertionError("retrying returns an answer or raises")

    async def _attempt(
        self, body: bytes, headers: dict[str, str], state: CallState, *, stream: bool
    ) -> tuple[Answer, aiohttp.ClientResponse]:
        state.begun = True
        try:
            response = await self._client.post(self._url, data=body, headers=headers, allow_redirects=False)
            try:
                # Some servers cannot stream, and answer with a whole completion.
                if response.status == _OK and stream and response.content_type != "application/json":
                    return _events(response), response
                text = await response.read()
            except BaseException:
                response.close()
                raise
        except _BROKEN as error:
            raise _unreachable(error) from None
        if response.status != _OK:
            raise _refused(response, text, state)
        try:
            completion = json.loads(text)
        except (ValueError, RecursionError):
            completion = None
        if not isinstance(completion, dict):
            raise _unusable("the model's server answered with something that is no JSON object")
        return completion, response


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[list[bytes], None]:
    """Yield the data of the events of a stream up to its end, as they arrive.

    Raises:
        UpstreamError: if the connection breaks, or ends before the stream does.
    """
    reader = EventReader()
    try:
        async for piece in response.content.iter_any():
            events = reader.feed(piece)
            if DONE in events:
                await _drain(response)
                yield events[: events.index(DONE)]
                return
            if events:
                yield events
    except (*_BROKEN, ValueError) as error:
        raise _unreachable(error).final from None
    raise _unusable("the model's server ended its stream early").final


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read what comes after the last event, which is nothing but the end, so that the connection can be used again."""
    with suppress(*_BROKEN):
        async with asyncio.timeout(_DRAIN_S):
            await response.read()


def _unreachable(error: Exception) -> FailedAttemptError:
    # Only the kind of error: its text may name hosts and proxies that are nobody's business.
    return _unusable(f"the model's server cannot be reached or broke off ({type(error).__name__})")


def _unusable(message: str) -> FailedAttemptError:
    return FailedAttemptError(UpstreamError(_BAD_GATEWAY, error_body(message, "server_error", code="upstream_failed")))


def _refused(response: aiohttp.ClientResponse, text: bytes, state: CallState) -> FailedAttemptError:
    """Return the failure with the server's own error, in its own shape but for keys."""
    status = response.status if response.status in _ERRORS else _BAD_GATEWAY
    try:
        refusal = json.loads(redacted(text.decode(), filter(None, [state.key]), similar=True))
    except (ValueError, RecursionError):
        refusal = None
    if not isinstance(refusal, dict) or "error" not in refusal:
        message = f"the model's server answered with status {response.status}"
        refusal = error_body(message, "server_error", code="upstream_failed")
    error = refusal["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return FailedAttemptError(
        UpstreamError(status, refusal),
        retryable=is_retryable(response.status, code, response.headers),
        pause_s=requested_pause(response.headers),
    )
