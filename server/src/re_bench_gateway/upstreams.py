"""What answers calls: a server that speaks OpenAI's API, or a model written in Python."""

from __future__ import annotations

import asyncio
import http.cookiejar
import importlib
import json
import sys
import traceback
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from httpx_sse import EventSource
from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
    wait_exception,
    wait_random_exponential,
)

from re_bench.errors import UsageError
from re_bench_gateway.errors import UpstreamError, upstream_failed
from re_bench_gateway.messages import check_completion, error_status, parse_object, reported_error
from re_bench_gateway.settings import PlugIn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from re_bench_gateway.settings import OpenAICompatible, Settings

Answer = dict[str, Any] | AsyncGenerator[str, None]
"""A whole completion, or the data of the events of a stream."""
_CONNECT_S = 15.0
_DRAIN_S = 1.0
_BROKEN = (httpx.HTTPError, httpx.StreamError, TimeoutError, OSError)
_RETRYABLE = frozenset({408, 409, 429})
_SERVER_ERROR = 500


@dataclass
class CallState:
    """The progress of one call."""

    key: str | None = field(repr=False)
    """The real key to ask with."""
    retries: int = 0
    begun: bool = False
    """Whether something may have been produced, and so must be paid for."""


def open_upstream(settings: Settings) -> OpenAIServer | PlugInUpstream:
    """Return the upstream of a gateway.

    Raises:
        UsageError: if a plug-in cannot be imported or made.
    """
    if isinstance(settings.upstream, PlugIn):
        return PlugInUpstream(settings.upstream)
    return OpenAIServer(settings.upstream, settings.max_answer_bytes)


class FailedAttemptError(Exception):
    """One attempt failed: with which error, whether to retry, and after which pause that the server asks for."""

    def __init__(self, final: UpstreamError, *, retryable: bool = True, pause_s: float = 0.0) -> None:
        super().__init__(final)
        self.final, self.retryable, self.pause_s = final, retryable, pause_s


def retrying(settings: OpenAICompatible) -> AsyncRetrying:
    """Return the retries of a call, within a number and a time.

    The pause is what the server asks for, and a random one that grows, so that calls do not come back together.
    """
    return AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, FailedAttemptError) and error.retryable),
        stop=stop_after_attempt(settings.attempts) | stop_before_delay(settings.patience_s),
        wait=wait_exception(lambda error: getattr(error, "pause_s", 0.0)) + wait_random_exponential(0.5, max=30),
        reraise=True,
    )


def requested_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, by ``retry-after-ms`` or ``Retry-After`` in seconds; or 0."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            seconds = float(headers[name]) * scale
            if 0 <= seconds < float("inf"):
                return seconds
    return 0.0


def is_retryable(status: int, code: object, headers: Mapping[str, str]) -> bool:
    """Tell whether another attempt may succeed. A spent quota stays spent, though its status is a rate limit's."""
    advice = headers.get("x-should-retry")
    if advice in {"true", "false"}:
        return advice == "true"
    return (status in _RETRYABLE and code != "insufficient_quota") or status >= _SERVER_ERROR


class OpenAIServer:
    """Any server with ``POST {base_url}/chat/completions``."""

    def __init__(self, settings: OpenAICompatible, max_answer_bytes: int) -> None:
        self._settings, self._max_bytes = settings, max_answer_bytes
        self._url = f"{settings.base_url.rstrip('/')}/chat/completions"
        no_cookies = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        self._client = httpx.AsyncClient(
            cookies=no_cookies,  # sessions share the connections, and nothing else
            headers={"accept-encoding": "identity", "user-agent": "re-bench"},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.concurrency),
            timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_S),
        )

    @asynccontextmanager
    async def ask(self, request: dict[str, Any], state: CallState) -> AsyncIterator[Answer]:
        """Ask the server, again if that may help."""
        body, stream = json.dumps(request, separators=(",", ":")).encode("ascii"), bool(request.get("stream"))
        del request  # as objects it takes many times its bytes
        async with AsyncExitStack() as stack:
            try:
                async for attempt in retrying(self._settings):
                    with attempt:
                        state.retries = attempt.retry_state.attempt_number - 1
                        answer = await stack.enter_async_context(self._attempt(body, state, stream=stream))
            except FailedAttemptError as failed:
                raise failed.final from None
            yield answer

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def _attempt(self, body: bytes, state: CallState, *, stream: bool) -> AsyncIterator[Answer]:
        """Ask once.

        Raises:
            FailedAttemptError: if there is no answer, or for a stream not its beginning.
        """
        headers = {b"content-type": b"application/json"}
        if state.key:
            headers[b"authorization"] = b"Bearer " + state.key.encode()
        request = self._client.build_request("POST", self._url, content=body, headers=headers)
        state.begun = True
        try:
            response = await self._client.send(request, stream=True)
        except _BROKEN as error:
            state.begun = False  # a client that leaves during the pause pays nothing
            raise FailedAttemptError(_unreachable(error)) from None
        async with aclosing(response):
            response.stream = _Bounded(response, self._max_bytes)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise upstream_failed("the model's server has compressed its answer")  # a few bytes may be gigabytes
            # Some servers cannot stream, and answer with a whole completion.
            kind = response.headers.get("content-type", "")
            if response.status_code == httpx.codes.OK and stream and kind.startswith("text/event-stream"):
                async with aclosing(_events(response)) as events:
                    yield events
            else:
                try:
                    answer = await _whole(response, state)
                except FailedAttemptError:
                    state.begun = False
                    raise
                yield answer


class _Bounded(httpx.AsyncByteStream):
    """The body of a response, up to a number of bytes."""

    def __init__(self, response: httpx.Response, most: int) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._stream, self._most = response.stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._most:  # it is not retried: it was produced, and is charged
                raise upstream_failed(f"the model's server answered with more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        """Close the connection, or keep it if the body was read to its end."""
        await self._stream.aclose()


async def _events(response: httpx.Response) -> AsyncGenerator[str, None]:
    """Yield the data of the events of a stream up to its end, as they arrive.

    Raises:
        UpstreamError: if the connection breaks, ends before the stream does, or the stream is too long.
    """
    try:
        async with aclosing(EventSource(response).aiter_sse()) as events:
            async for event in events:
                if event.data == "[DONE]":
                    with suppress(TimeoutError):  # read the end of the response, so that the connection can be kept
                        async with asyncio.timeout(_DRAIN_S):
                            async for _event in events:
                                pass
                    return
                if event.data:
                    yield event.data
    except _BROKEN as error:
        raise _unreachable(error) from None
    raise upstream_failed("the model's server ended its stream early")


async def _whole(response: httpx.Response, state: CallState) -> dict[str, Any]:
    """Return the completion that a server has answered with.

    Raises:
        FailedAttemptError: if it is an error, which some servers send with status 200, or no JSON.
        UpstreamError: if it is an answer to something else. It is not retried: it was produced, and is charged.
    """
    try:
        text = await response.aread()
    except _BROKEN as error:
        raise FailedAttemptError(_unreachable(error)) from None
    try:
        answer = parse_object(text)
    except ValueError:
        answer = None
    if response.status_code != httpx.codes.OK or (answer is not None and answer.get("error")):
        status = error_status(response.status_code, answer)
        final = UpstreamError(status, reported_error(answer, response.status_code, filter(None, [state.key])))
        again = is_retryable(status, final.body["error"]["code"], response.headers)
        raise FailedAttemptError(final, retryable=again, pause_s=requested_pause(response.headers))
    if answer is None:
        raise FailedAttemptError(upstream_failed("the model's server answered with something that is no JSON object"))
    return check_completion(answer)


def _unreachable(error: Exception) -> UpstreamError:
    # Only the kind of error: its text may name hosts and proxies.
    return upstream_failed(f"the model's server cannot be reached or broke off ({type(error).__name__})")


class PlugInUpstream:
    """Asks what a factory has returned: ``async answer(request) -> completion``, in the gateway's event loop.

    Raises:
        UsageError: if it cannot be imported or made.
    """

    def __init__(self, settings: PlugIn) -> None:
        self._answer = _load(settings)

    @asynccontextmanager
    async def ask(self, request: dict[str, Any], state: CallState) -> AsyncIterator[Answer]:
        """Ask it for a whole completion."""
        state.begun = True
        try:
            completion = await self._checked_answer(request)
        except UpstreamError:
            state.begun = False
            raise
        yield completion

    async def close(self) -> None:
        """Do nothing."""

    async def _checked_answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            completion = await self._answer(request)
        except UpstreamError:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, it is a failure of this call alone
            traceback.print_exc()
            raise upstream_failed("the plug-in model failed; the gateway's stderr says why", 500) from None
        try:
            return check_completion(parse_object(json.dumps(completion)))
        except (UpstreamError, ValueError, TypeError, RecursionError):
            message = "the plug-in model returned something that is no chat.completion"
            raise upstream_failed(message, 500) from None


def _load(settings: PlugIn) -> Callable[[dict[str, Any]], Awaitable[Any]]:
    module, _colon, function = settings.factory.partition(":")
    if settings.path is not None:
        sys.path.insert(0, str(settings.path.resolve()))
    try:
        factory = getattr(importlib.import_module(module), function)
        answer: Callable[[dict[str, Any]], Awaitable[Any]] = factory(**settings.arguments)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"the plug-in model {settings.factory!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    return answer
