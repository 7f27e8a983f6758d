"""What answers calls: a server that speaks OpenAI's API, or a model written in Python."""

from __future__ import annotations

import http.cookiejar
import importlib
import json
import sys
import traceback
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
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
from re_bench_gateway.messages import check_completion, parse_object, reported_error
from re_bench_gateway.settings import PlugIn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from re_bench_gateway.settings import OpenAICompatible, Settings

_CONNECT_S = 15.0
_BROKEN = (httpx.HTTPError, httpx.StreamError, TimeoutError, OSError)
_RETRYABLE = frozenset({408, 409, 429})
_ERRORS = range(400, 600)
_SERVER_ERROR, _BAD_GATEWAY = 500, 502


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
    """Return whether another attempt may succeed. A spent quota stays spent, though its status is a rate limit's."""
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
            headers={"accept-encoding": "identity", "content-type": "application/json", "user-agent": "re-bench"},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.concurrency),
            timeout=httpx.Timeout(settings.timeout_s, connect=_CONNECT_S),
        )

    async def ask(self, request: dict[str, Any], state: CallState) -> dict[str, Any]:
        """Return the server's completion, asking again if that may help.

        Raises:
            UpstreamError: if there is none.
        """
        body = json.dumps(request, separators=(",", ":")).encode("ascii")
        del request  # as objects it takes many times its bytes
        try:
            async for attempt in retrying(self._settings):
                with attempt:
                    state.retries, state.begun = attempt.retry_state.attempt_number - 1, True
                    try:
                        return await self._attempt(body, state.key)
                    except FailedAttemptError:
                        state.begun = False  # a call that ends during the pause costs nothing
                        raise
        except FailedAttemptError as failed:
            raise failed.final from None
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _attempt(self, body: bytes, key: str | None) -> dict[str, Any]:
        """Ask once.

        Raises:
            FailedAttemptError: if there is no answer, or an error, which some servers send with status 200.
            UpstreamError: if it is another answer than a completion, which was produced, and is charged.
        """
        headers = {b"authorization": b"Bearer " + key.encode()} if key else {}
        request = self._client.build_request("POST", self._url, content=body, headers=headers)
        try:
            response = await self._client.send(request, stream=True)
            async with aclosing(response):
                text = await self._read(response)
        except _BROKEN as error:  # only its kind is passed on: its text may name hosts and proxies
            message = f"the model's server cannot be reached or broke off ({type(error).__name__})"
            raise FailedAttemptError(upstream_failed(message)) from None
        try:
            answer = parse_object(text)
        except ValueError:
            answer = None
        if response.status_code != httpx.codes.OK or (answer is not None and answer.get("error")):
            status = response.status_code if response.status_code in _ERRORS else _BAD_GATEWAY
            final = UpstreamError(status, reported_error(answer, response.status_code, [key] if key else []))
            again = is_retryable(status, final.body["error"]["code"], response.headers)
            raise FailedAttemptError(final, retryable=again, pause_s=requested_pause(response.headers))
        if answer is None:
            raise FailedAttemptError(upstream_failed("the model's server answered with no JSON object"))
        return check_completion(answer)

    async def _read(self, response: httpx.Response) -> bytes:
        """Return the body of a response, of which a few compressed bytes could be gigabytes."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise upstream_failed("the model's server has compressed its answer")
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > self._max_bytes:
                raise upstream_failed(f"the model's server answered with more than {self._max_bytes} bytes")
        return bytes(body)


class PlugInUpstream:
    """Asks what a factory has returned: ``async answer(request) -> completion``, in the gateway's event loop.

    Raises:
        UsageError: if it cannot be imported or made.
    """

    def __init__(self, settings: PlugIn) -> None:
        self._answer = _load(settings)

    async def ask(self, request: dict[str, Any], state: CallState) -> dict[str, Any]:
        """Return its completion.

        Raises:
            UpstreamError: if it fails.
        """
        state.begun = True
        try:
            return await self._checked_answer(request)
        except UpstreamError:
            state.begun = False
            raise

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
