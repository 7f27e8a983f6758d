"""A server that speaks OpenAI's API: retried, bounded, its errors passed on without keys."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from re_bench_gateway.answers import check_completion, error_status, parse_object, told_error, unusable
from re_bench_gateway.errors import UpstreamError
from re_bench_gateway.streaming import DONE, EventReader
from re_bench_gateway.upstreams.retries import FailedAttemptError, is_retryable, requested_pause, retrying

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from re_bench_gateway.settings import OpenAICompatible
    from re_bench_gateway.upstreams.protocol import Answer, CallState

_OK = 200
_CONNECT_S = 15.0
_DRAIN_S = 1.0
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class OpenAIServer:
    """Any server with ``POST {base_url}/chat/completions``."""

    def __init__(self, settings: OpenAICompatible, max_answer_bytes: int) -> None:
        self._settings, self._max_bytes = settings, max_answer_bytes
        self._url = f"{settings.base_url.rstrip('/')}/chat/completions"
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.concurrency),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": "identity", "user-agent": "re-bench"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=settings.timeout_s),
            trust_env=True,  # proxies
        )

    @asynccontextmanager
    async def ask(self, request: dict[str, Any], state: CallState) -> AsyncIterator[Answer]:
        """Ask the server, again if that may help."""
        body, stream = json.dumps(request, separators=(",", ":")).encode("ascii"), bool(request.get("stream"))
        del request  # as objects it takes many times its bytes
        headers = {"content-type": "application/json"}
        if state.key:
            headers["authorization"] = f"Bearer {state.key}"
        answer, response = await self._answered(body, headers, state, stream=stream)
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
                    return self._events(response), response
                text = b"".join([piece async for piece in self._bounded(response)])
            except BaseException:
                response.close()
                raise
        except _BROKEN as error:
            raise FailedAttemptError(_unreachable(error)) from None
        return _completion(response, text, state), response

    async def _events(self, response: aiohttp.ClientResponse) -> AsyncGenerator[list[bytes], None]:
        """Yield the data of the events of a stream up to its end, as they arrive.

        Raises:
            UpstreamError: if the connection breaks, ends before the stream does, or the stream is too long.
        """
        reader = EventReader()
        try:
            async for piece in self._bounded(response):
                events = reader.feed(piece)
                if DONE in events:
                    await _drain(response)
                    yield events[: events.index(DONE)]
                    return
                if events:
                    yield events
        except (*_BROKEN, ValueError) as error:
            raise _unreachable(error) from None
        raise unusable("ended its stream early")

    async def _bounded(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        """Yield what arrives, decompressed piece by piece.

        Raises:
            UpstreamError: if it is too much. It is not tried again: it was produced, and is charged.
        """
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > self._max_bytes:
                raise unusable(f"answered with more than {self._max_bytes} bytes")
            yield piece


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read what comes after the last event, which is nothing but the end, so that the connection can be used again."""
    with suppress(*_BROKEN):
        async with asyncio.timeout(_DRAIN_S):
            async for _piece in response.content.iter_any():
                pass


def _unreachable(error: Exception) -> UpstreamError:
    # Only the kind of error: its text may name hosts and proxies that are nobody's business.
    return unusable(f"cannot be reached or broke off ({type(error).__name__})")


def _completion(response: aiohttp.ClientResponse, text: bytes, state: CallState) -> dict[str, Any]:
    """Return the completion that a server has answered with.

    Raises:
        FailedAttemptError: if it is an error, which some servers send with status 200, or nonsense.
        UpstreamError: if it is an answer to something else. It is not tried again: it was produced, and is charged.
    """
    try:
        answer = parse_object(text)
    except ValueError:
        answer = None
    if response.status != _OK or (answer is not None and answer.get("error")):
        raise _refused(response, answer, state)
    if answer is None:
        raise FailedAttemptError(unusable("answered with something that is no JSON object"))
    return check_completion(answer)


def _refused(response: aiohttp.ClientResponse, refusal: dict[str, Any] | None, state: CallState) -> FailedAttemptError:
    """Return the failure with the server's own error, in its own words but for keys."""
    status = error_status(response.status, refusal)
    error = UpstreamError(status, told_error(refusal, response.status, filter(None, [state.key])))
    return FailedAttemptError(
        error,
        retryable=is_retryable(status, error.body["error"]["code"], response.headers),
        pause_s=requested_pause(response.headers),
    )
