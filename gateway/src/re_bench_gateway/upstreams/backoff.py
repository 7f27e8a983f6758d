"""When to try again."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Backoff", "asked_pause", "worth_retrying"]

_FIRST_S, _LONGEST_S = 0.5, 30.0
_PASSING = frozenset({408, 409, 429})
_SERVER_ERROR = 500


class Backoff:
    """The pauses of one call: exponential with jitter, or as long as the server asks, within a number and a time."""

    def __init__(self, attempts: int, patience_s: float) -> None:
        self._attempts = attempts
        self._until = time.monotonic() + patience_s
        self._tried = 0

    def pause(self, asked_s: float | None) -> float | None:
        """Return how many seconds to wait after a failure, or None to give up."""
        self._tried += 1
        if self._tried >= self._attempts:
            return None
        # Half of it is random, so that calls that failed together do not come back together.
        own = min(_FIRST_S * 2 ** (self._tried - 1), _LONGEST_S) * random.uniform(0.5, 1.0)
        pause = own if asked_s is None else asked_s + random.uniform(0.0, 0.1) * min(asked_s, 1.0)
        return pause if time.monotonic() + pause <= self._until else None


def asked_pause(headers: Mapping[str, str]) -> float | None:
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


def worth_retrying(status: int, code: object, headers: Mapping[str, str]) -> bool:
    """Tell whether another attempt may succeed. A spent quota stays spent, though its status is a rate limit's."""
    said = headers.get("x-should-retry")
    if said in {"true", "false"}:
        return said == "true"
    return (status in _PASSING and code != "insufficient_quota") or status >= _SERVER_ERROR
