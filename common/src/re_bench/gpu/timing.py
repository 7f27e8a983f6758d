"""Times of programs that take turns on one device, as they are seen from outside.

Whoever wants to know how fast a program is runs it in turns with others in one run, so that drift affects all alike,
and times each turn from the trusted side.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from re_bench.errors import InvalidSubmissionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Result = TypeVar("Result")

_RESAMPLES = 2000
_OUTER = 0.025


@dataclass(frozen=True)
class Time:
    """The time of a call: the median over rounds, in milliseconds, and its 95 % interval."""

    milliseconds: float
    low: float
    high: float
    rounds: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Sequence[float]) -> Time:
        """Return the time of a call from one value a round."""
        return cls(statistics.median(rounds), *median_interval(rounds), tuple(rounds))


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median (percentile method; Efron and Tibshirani 1993, chapter 13).

    The resamples are the same in every run, so the interval of given values is one and the same.
    """
    generator = random.Random(0)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    last = len(medians) - 1
    return medians[round(_OUTER * last)], medians[round((1 - _OUTER) * last)]


def take_turns(turns: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """Call each function once in every round, in an order drawn anew, and return their results in order of the rounds.

    Args:
        turns: the functions, by name.
        rounds: the number of rounds.
    """
    generator = random.SystemRandom()
    results: dict[str, list[Result]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name in generator.sample(list(turns), len(turns)):
            results[name].append(turns[name]())
    return results


def check_not_slowed_down(name: str, alone: Time, beside: Time, most: float) -> None:
    """Check that a program of ours ran as fast between a submission's turns as before it was loaded.

    A submission that keeps the device busy while others have their turn would make them slower, and itself
    look faster beside them.

    Args:
        name: what the program is called.
        alone: its time without the submission.
        beside: its time between the submission's turns.
        most: the share by which it may be longer.

    Raises:
        InvalidSubmissionError: if it became slower than that.
    """
    if beside.milliseconds > alone.milliseconds * (1 + most):
        raise InvalidSubmissionError(
            f"the device was kept busy out of turn: {name} took {beside.milliseconds:.4f} ms between the submission's "
            f"turns and {alone.milliseconds:.4f} ms without it; all work must be done when a call returns"
        )
