"""From the seconds of turns to the times of calls.

A turn's time, less what a turn costs beside its calls (the *control*), is shared among its calls. The control is found
on our own solutions, as what the clock says beyond the CUDA events of a process that runs no code but ours.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from re_bench.errors import InvalidSubmissionError, ReBenchError
from re_bench.gpu.timing import Time, check_not_slowed_down
from triton_cumsum.profiles import GPU

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OURS = ("baseline", "reference")
SUBMISSION = "submission"
_MAX_CLAIM_S = 1e6


@dataclass(frozen=True)
class Turn:
    """Seconds of a turn by the clock, and of its calls by the CUDA events of the runner's process."""

    seconds: float
    events: float


def evaluate(
    alone: Mapping[str, Sequence[Turn]], beside: Mapping[str, Sequence[Turn]], full: int, calls: int
) -> tuple[dict[str, Time], dict[str, Any]]:
    """Return the times of a call, and further figures for the log.

    Args:
        alone: our turns before the submission was loaded.
        beside: all turns after it.
        full: calls of our turns.
        calls: calls of the submission's turns.
    """
    control = min(control_seconds(beside, OURS), GPU.max_control_growth * control_seconds(alone, OURS)) / full
    counts = {**dict.fromkeys(OURS, full), SUBMISSION: calls}
    times = our_event_times(beside, full) | {SUBMISSION: clock_time(beside[SUBMISSION], calls, control)}
    figures = {
        "times": {name: asdict(time) for name, time in times.items()},
        "clock_ms": {name: clock_time(beside[name], count, control).milliseconds for name, count in counts.items()},
        "claimed_ms": claimed_ms(beside[SUBMISSION], calls),
        "calls": counts,
        "control_ms": 1e3 * control,
    }
    return times, figures


def check_steady(alone: Mapping[str, Time], beside: Mapping[str, Time], record: Mapping[str, Any]) -> None:
    """Check that our solutions did not become slower, and find whose fault it is if they did.

    Args:
        alone: the times of our solutions before the submission was loaded.
        beside: their times between the submission's turns.
        record: the state of the GPU afterwards, ``gpu_after`` and ``others_on_gpu``.

    Raises:
        InvalidSubmissionError: if one became slower and nothing but the submission explains it.
        ReBenchError: if the GPU throttles or others compute on it.
    """
    try:
        for name in OURS:
            check_not_slowed_down(name, alone[name], beside[name], GPU.max_slowdown)
    except InvalidSubmissionError as fault:
        throttled = record["gpu_after"]["throttle_reasons"]
        if throttled or record["others_on_gpu"]:
            others = [process["name"] for process in record["others_on_gpu"]]
            raise ReBenchError(
                f"the GPU is not steady (it throttles: {throttled}; others on it: {others}): {fault}"
            ) from None
        raise


def control_seconds(turns: Mapping[str, Sequence[Turn]], names: Iterable[str]) -> float:
    """Return the seconds that a turn takes beside its calls, found on our own solutions.

    Their process runs no code but ours, so its CUDA events can be believed.
    """
    return statistics.median(turn.seconds - turn.events for name in names for turn in turns[name])


def clock_time(turns: Sequence[Turn], calls: int, control: float) -> Time:
    """Return the time of a call by the clock, less ``control`` seconds.

    Turns of few calls have no more removed from each than full turns: a submission that is slow while calls are
    counted, so as to have few, gains nothing.
    """
    return Time.of([1e3 * (turn.seconds / calls - control) for turn in turns])


def event_time(turns: Sequence[Turn], calls: int) -> Time:
    """Return the time of a call by CUDA events, which is exact for our own solutions and a claim of any other's."""
    return Time.of([1e3 * turn.events / calls for turn in turns])


def our_event_times(turns: Mapping[str, Sequence[Turn]], calls: int) -> dict[str, Time]:
    """Return the times of a call of our solutions by CUDA events, by name."""
    return {name: event_time(turns[name], calls) for name in OURS}


def claimed_ms(turns: Sequence[Turn], calls: int) -> float | None:
    """Return the milliseconds of a call that a runner's CUDA events claim, or None if they are no number."""
    claim = event_time(turns, calls).milliseconds
    return claim if math.isfinite(claim) else None


def claimed_seconds(value: Any) -> float:
    """Return what an untrusted process calls a number of seconds, NaN where it is none."""
    return float(value) if isinstance(value, int | float) and abs(value) <= _MAX_CLAIM_S else math.nan
