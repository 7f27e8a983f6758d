"""Normalise raw scores so that the starting score is 0 and the reference score 1, and aggregate attempts.

The score of an invalid attempt is None, and so is the aggregate of invalid attempts. A number such as 0 could be a good
score: the original benchmark scored 0 if all attempts failed, but on triton_cumsum, whose raw score is
ln(milliseconds), a raw score of 0 means a kernel that takes one millisecond, which beats the reference.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from operator import itemgetter
from typing import Literal, get_args

How = Literal["min", "max", "last"]
"""The attempt that counts: the valid attempt with the lowest or highest score, or the last valid attempt."""

_PICK: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max, "last": itemgetter(-1)}


def finite(value: object, name: str) -> float:
    """Convert a real number, such as a numpy scalar, to a finite float; ``name`` is its name in error messages.

    Raises:
        TypeError: if ``value`` is not a real number, or is a bool.
        ValueError: if ``value`` is NaN, infinite, or too large for a float.
    """
    if type(value) is float and math.isfinite(value):  # fast path, since isinstance with Real is slow
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number}")
    return number


def as_finite(value: object) -> float | None:
    """Return a JSON value as a finite float, or None if it is not a finite number."""
    try:
        return finite(value, "a number")
    except (TypeError, ValueError):
        return None


def normalise(raw: float, starting: float, reference: float) -> float:
    """Return the reward of a raw score: 0 at the starting score, 1 at the reference score, linear and unclipped.

    A reward below 0 is worse than the baseline, and a reward above 1 is better than the reference. All arguments are in
    the task's unit. The order of the anchors determines whether lower or higher raw scores are better.

    Args:
        raw: the raw score of a valid attempt.
        starting: the raw score of the baseline.
        reference: the raw score of the reference solution.

    Raises:
        TypeError: if an argument is not a real number.
        ValueError: if an argument is not finite, the anchors are equal, or the result exceeds the range of a float.
    """
    raw, starting, reference = finite(raw, "raw"), finite(starting, "starting"), finite(reference, "reference")
    if starting == reference:
        raise ValueError(f"starting and reference must differ, both are {starting}")
    span = finite(reference - starting, "the distance between starting and reference")
    reward = finite(raw - starting, "the distance between raw and starting") / span
    # If lower is better, a baseline gets -0.0, which adding zero turns into 0.0.
    return finite(reward, "the reward") + 0.0


def aggregate(scores: Iterable[float | None], how: How) -> float | None:
    """Combine the scores of several attempts into one.

    Args:
        scores: scores in the order of the attempts; None for an invalid attempt, which is ignored.
        how: "min", "max" or "last" (the last valid attempt).

    Returns:
        The chosen score, or None if no attempt was valid.

    Raises:
        TypeError: if a score is neither None nor a real number.
        ValueError: if a score is not finite, or ``how`` is unknown.
    """
    if how not in _PICK:
        raise ValueError(f"how must be one of {', '.join(get_args(How))}, got {how!r}")
    valid = [finite(score, "score") for score in scores if score is not None]
    return _PICK[how](valid) if valid else None
