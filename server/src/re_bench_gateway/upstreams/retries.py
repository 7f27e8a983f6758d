"""When a failed call is tried again."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenacity import RetryCallState

    from re_bench_gateway.errors import UpstreamError
    from re_bench_gateway.settings import OpenAICompatible

_FIRST_S, _LONGEST_S = 0.5, 30.0
_RETRYABLE = frozenset({408, 409, 429})
_SERVER_ERROR = 500


def retrying(settings: OpenAICompatible) -> AsyncRetrying:
    """Return what tries a call again: exponential pauses, or as long as the server asks, within a number and a time."""
    return AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, FailedAttemptError) and error.retryable),
        stop=stop_after_attempt(settings.attempts) | stop_before_delay(settings.patience_s),
        wait=pause_after,
        reraise=True,
    )


class FailedAttemptError(Exception):
    """One attempt failed: with what, whether it is worth another one, and after which pause the server asks for."""

    def __init__(self, final: UpstreamError, *, retryable: bool = True, pause_s: float | None = None) -> None:
        super().__init__(final)
        self.final, self.retryable, self.pause_s = final, retryable, pause_s


def pause_after(state: RetryCallState) -> float:
    """Return the seconds to wait after a failed attempt."""
    error = state.outcome.exception() if state.outcome is not None else None
    if isinstance(error, FailedAttemptError) and error.pause_s is not None:
        return error.pause_s + random.uniform(0.0, 0.1) * min(error.pause_s, 1.0)
    # Half of it is random, so that calls that failed together do not come back together.
    return min(_FIRST_S * 2.0 ** (state.attempt_number - 1), _LONGEST_S) * random.uniform(0.5, 1.0)


def requested_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait: by ``retry-after-ms``, or ``Retry-After`` in seconds or a date."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        return max(parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time(), 0.0)
    except (KeyError, ValueError, TypeError, IndexError):
        return None


def is_retryable(status: int, code: object, headers: Mapping[str, str]) -> bool:
    """Tell whether another attempt may succeed. A spent quota stays spent, though its status is a rate limit's."""
    advice = headers.get("x-should-retry")
    if advice in {"true", "false"}:
        return advice == "true"
    return (status in _RETRYABLE and code != "insufficient_quota") or status >= _SERVER_ERROR
