"""The time to wait before a failed call is repeated."""

from __future__ import annotations

import email.utils
import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["wait_before"]


def wait_before(attempt: int, headers: Mapping[str, str], *, first_s: float = 1.0, longest_s: float = 60.0) -> float:
    """Return the seconds to wait before attempt number ``attempt`` (2 is the first repeat).

    What the server requests (``Retry-After-Ms``, ``Retry-After`` in seconds or as a date) has priority; else the wait
    doubles each time, less a random part so that many agents do not repeat at once.
    """
    requested = _requested_wait(headers)
    if requested is not None:
        return requested
    return float(min(longest_s, first_s * 2.0 ** (attempt - 2)) * random.uniform(0.5, 1.0))


def _requested_wait(headers: Mapping[str, str]) -> float | None:
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is None:
                continue
            seconds = email.utils.mktime_tz(date) - time.time()
        if 0 <= seconds < float("inf"):
            return seconds
    return None
