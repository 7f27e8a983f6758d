"""The truth: the hidden function, points of it, and the check of predictions.

Sandboxes cannot read this file, but the truth is the same everywhere and public with this repository; the section
Instances of docs/task-authors.md shows how to draw a secret one.
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
"""Largest allowed prediction; squares of much larger numbers overflow."""

_WAVES = ((1.0, 1.0, 0.3), (0.5, 3.0, 1.1), (0.25, 7.0, 2.0))
"""Amplitude, frequency and phase of each wave."""


def truth(x: float) -> float:
    """Return the hidden function's value at ``x``, a number from 0 to 1."""
    # CHANGE ME: the truth of your task.
    return sum(height * math.sin(2 * math.pi * rate * x + phase) for height, rate, phase in _WAVES)


def known_points(size: Size) -> list[tuple[float, float]]:
    """Return the points that agents get: sorted places from 0 to 1, with noisy values."""
    draw = random.Random("known")
    return [(x, truth(x) + draw.gauss(0, size.noise)) for x in sorted(draw.random() for _ in range(size.points))]


def held_out_points(size: Size) -> list[tuple[float, float]]:
    """Return the points for scoring: other places in random order, with exact values."""
    draw = random.Random("held out")
    return [(x, truth(x)) for x in (draw.random() for _ in range(size.held_out))]


def check_predictions(predicted: list[float], count: int) -> None:
    """Check a submission's predictions.

    Raises:
        InvalidSubmissionError: if there are not ``count`` numbers, or one is too large to compute the score.
    """
    # CHANGE ME: reject everything that is not an answer, with a reason that the agent can act on.
    if len(predicted) != count:
        raise InvalidSubmissionError("the fitted function must return one number for each place")
    if not all(-LARGEST <= value <= LARGEST for value in predicted):  # NaN is not
        raise InvalidSubmissionError(f"the fitted function must return numbers from -{LARGEST:,} to {LARGEST:,}")
