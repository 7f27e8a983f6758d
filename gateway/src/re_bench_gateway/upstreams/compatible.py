"""A server that speaks OpenAI's API: retried, bounded, its errors passed on without keys."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from re_bench_gateway.errors import UpstreamError, error_body
from re_bench_gateway.redaction import redacted
from re_bench_gateway.sse import DONE, EventReader
from re_bench_gateway.upstreams.backoff import Backoff, asked_pause, worth_retrying

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from re_bench_gateway.settings import OpenAICompatible
    from re_bench_gateway.upstreams import Answer, Asked

__all__ = ["CompatibleUpstream"]

_OK = 200
_ERRORS = range(400, 600)
_BAD_GATEWAY = 502
_CONNECT_S = 15.0
_DRAIN_S = 1.0
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class CompatibleUpstream:
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
    async def asking(self, request: dict[str, Any], asked: Asked) -> AsyncIterator[Answer]:
        """Ask the server, again if that may help; a call keeps its slot while it waits, which slows all down."""
        body = json.dumps(request, separators=(",", ":")).encode("ascii")
        headers = {"content-type": "application/json"}
        if asked.key:
            headers["authorization"] = f"Bearer {asked.key}"
        async with self._slots:
            answer, response = await self._answered(body, headers, asked, stream=bool(request.get("stream")))
            try:
                yield answer
            finally:
                response.close()  # which keeps the connection, if the answer was read to its end

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _answered(
        self, body: bytes, headers: dict[str, str], asked: Asked, *, stream: bool
    ) -> tuple[Answer, aiohttp.ClientResponse]:
        """Try until there is an answer, or for a stream its beginning."""
        backoff = Backoff(self._settings.attempts, self._settings.patience_s)
        while True:
            try:
                return await self._attempt(body, headers, asked, stream=stream)
            except _FailedAttemptError as failed:
                asked.begun = False
                pause = backoff.pause(failed.asked_s) if failed.passing else None
                if pause is None:
                    raise failed.final from None
            asked.retries += 1
            await asyncio.sleep(pause)

    async def _attempt(
        self, body: bytes, headers: dict[str, str], asked: Asked, *, stream: bool
    ) -> tuple[Answer, aiohttp.ClientResponse]:
        asked.begun = True
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
            raise _refused(response, text, asked)
        try:
            completion = json.loads(text)
        except (ValueError, RecursionError):
            completion = None
        if not isinstance(completion, dict):
            raise _unusable("the model's server answered with something that is no JSON object")
        return completion, response


class _FailedAttemptError(Exception):
    """One attempt failed: with what, whether it is worth another one, and after which pause the server asks for."""

    def __init__(self, final: UpstreamError, *, passing: bool = True, asked_s: float | None = None) -> None:
        super().__init__(final)
        self.final, self.passing, self.asked_s = final, passing, asked_s


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


def _unreachable(error: Exception) -> _FailedAttemptError:
    # Only the kind of error: its text may name hosts and proxies that are nobody's business.
    return _unusable(f"the model's server cannot be reached or broke off ({type(error).__name__})")


def _unusable(message: str) -> _FailedAttemptError:
    return _FailedAttemptError(UpstreamError(_BAD_GATEWAY, error_body(message, "server_error", code="upstream_failed")))


def _refused(response: aiohttp.ClientResponse, text: bytes, asked: Asked) -> _FailedAttemptError:
    """Return the failure with the server's own error, in its own shape but for keys."""
    status = response.status if response.status in _ERRORS else _BAD_GATEWAY
    try:
        said = json.loads(redacted(text.decode(), filter(None, [asked.key]), similar=True))
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "error" not in said:
        message = f"the model's server answered with status {response.status}"
        said = error_body(message, "server_error", code="upstream_failed")
    error = said["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return _FailedAttemptError(
        UpstreamError(status, said),
        passing=worth_retrying(response.status, code, response.headers),
        asked_s=asked_pause(response.headers),
    )
