"""The scale from 0 (starting score) to 1 (reference score), and the one score of many attempts.

The original benchmark turned an all-NaN best score into 0. On triton_cumsum, whose raw score is
ln(milliseconds), that equals a kernel of one millisecond: better than the reference, and earned by failing every
time. Here an invalid attempt is None, never a number, and stays None however attempts are combined.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Literal, get_args

How = Literal["min", "max", "last"]
"""How the scores of a run's attempts become one: the smallest, the largest, or the last valid one."""


def _last(scores: Sequence[float]) -> float:
    return scores[-1]


_PICK: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max, "last": _last}


def finite(value: object, name: str) -> float:
    """Return a number as a plain, finite float.

    Args:
        value: any real number, numpy's included.
        name: what the number is, for the message.

    Raises:
        TypeError: if it is no real number; True and False are none either.
        ValueError: if it is NaN, infinite, or too large for a float.
    """
    if type(value) is float and math.isfinite(value):  # the check below asks an abstract class, which takes long
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


def normalise(raw: float, starting: float, reference: float) -> float:
    """Place a raw score on the scale where the starting score is 0 and the reference score is 1.

    The result is not clipped: below 0 is worse than the baseline, above 1 better than the reference. All three
    are in the task's own unit; whether lower or higher is better follows from the order of the anchors.

    Args:
        raw: the raw score of a valid attempt.
        starting: the raw score of the baseline.
        reference: the raw score of the reference solution.

    Raises:
        TypeError: if an argument is no real number.
        ValueError: if an argument is not finite, the anchors are equal, or the result is beyond what a float holds.
    """
    raw, starting, reference = finite(raw, "raw"), finite(starting, "starting"), finite(reference, "reference")
    if starting == reference:
        raise ValueError(f"starting and reference must differ, both are {starting}")
    span = finite(reference - starting, "the distance between starting and reference")
    reward = finite(raw - starting, "the distance between raw and starting") / span
    # Adding zero turns the -0.0 of a lower-is-better baseline into 0.0.
    return finite(reward, "the reward") + 0.0


def aggregate(scores: Iterable[float | None], how: How) -> float | None:
    """Combine the scores of several attempts into one.

    Args:
        scores: in the order of the attempts; None marks an invalid attempt and is dropped.
        how: "min", "max" or "last", which is the last valid one.

    Returns:
        The chosen score, or None if no attempt was valid. Never a stand-in number; see the top of this module.

    Raises:
        TypeError: if a score is neither None nor a real number.
        ValueError: if a score is not finite, or `how` is unknown.
    """
    if how not in _PICK:
        raise ValueError(f"how must be one of {', '.join(get_args(How))}, got {how!r}")
    valid = [finite(score, "score") for score in scores if score is not None]
    return _PICK[how](valid) if valid else None
