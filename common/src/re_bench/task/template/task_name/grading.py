"""The truth: the hidden function, the points that are drawn from it, and what a prediction must be.

No sandbox can read this file. It is the same everywhere and public, so that whoever knows this repository knows the
truth; docs/task-authors.md says how to draw one that is not (Instances).
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from re_bench.errors import InvalidSubmissionError

if TYPE_CHECKING:
    from task_name.profiles import Size

__all__ = ["LARGEST", "check_predictions", "held_out_points", "known_points", "truth"]

LARGEST = 1_000_000
"""The largest number that may be predicted; squares of much larger ones are no floats."""

_WAVES = ((1.0, 1.0, 0.3), (0.5, 3.0, 1.1), (0.25, 7.0, 2.0))
"""Amplitude, frequency and phase of each wave."""


def truth(x: float) -> float:
    """Return the hidden function's value at ``x``, a number from 0 to 1."""
    # CHANGE ME: what is right in your task.
    return sum(height * math.sin(2 * math.pi * rate * x + phase) for height, rate, phase in _WAVES)


def known_points(size: Size) -> list[tuple[float, float]]:
    """Return the points that agents have: places from 0 to 1 in order, with noisy values."""
    draw = random.Random("known")
    return [(x, truth(x) + draw.gauss(0, size.noise)) for x in sorted(draw.random() for _ in range(size.points))]


def held_out_points(size: Size) -> list[tuple[float, float]]:
    """Return the points that are scored: other places, in random order, with the values themselves."""
    draw = random.Random("held out")
    return [(x, truth(x)) for x in (draw.random() for _ in range(size.held_out))]


def check_predictions(predicted: list[float], count: int) -> None:
    """Do nothing, or refuse what a submission predicted.

    Raises:
        InvalidSubmissionError: if it is not ``count`` numbers, or one is so large that the score could not be computed.
    """
    # CHANGE ME: refuse whatever is not an answer, with a reason that the agent can act on.
    if len(predicted) != count:
        raise InvalidSubmissionError("the fitted function must return one number for each place")
    if not all(-LARGEST <= value <= LARGEST for value in predicted):  # NaN is not
        raise InvalidSubmissionError(f"the fitted function must return numbers from -{LARGEST:,} to {LARGEST:,}")
