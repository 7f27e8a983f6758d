"""Values that agents, submissions and strangers wrote, as a report can have them."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from re_bench.normalise import finite

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 1e15


def shortened(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters and a remark: of a longer one the beginning and the end."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]} [... {len(text) - longest} characters ...] {text[head - longest :]}"


def valid_unicode(text: str) -> str:
    """Return a text without what no Unicode is, such as the bytes of a file name that is no UTF-8."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain_json(value: Any) -> Any:
    """Return a value of JSON without what Python's reader makes of it and others refuse: NaN, 1e999, half letters."""
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {valid_unicode(str(key)): plain_json(entry) for key, entry in value.items()}
    return [plain_json(entry) for entry in value] if isinstance(value, list | tuple) else value


def bounded(number: float) -> float:
    """Return a number of a log, or the largest one that a report has: sums, squares and figures of it have to be."""
    return float(number) if -_MOST <= number <= _MOST else math.copysign(_MOST, number)


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the figures that are known; None if none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the figures that are known; None if none is."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def as_finite(value: object) -> float | None:
    """Return a number of JSON; None for anything else, and for what no float holds."""
    try:
        return finite(value, "a number")
    except (TypeError, ValueError):
        return None
