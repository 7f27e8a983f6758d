"""Compute the times of calls from the seconds of turns.

A turn's time, minus the fixed cost of a turn (the *control*), is divided by its calls. The control is measured on our
reference, as the clock's time minus the CUDA events of its process, which only runs our code. The reference's turns
are as short as those of a fast submission, where the control matters.
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
    from collections.abc import Mapping, Sequence

OURS = ("baseline", "reference")
SUBMISSION = "submission"
_MAX_CLAIM_S = 1e6
_CPU_GRAIN_S = 0.1  # resolution of CPU time, which has ticks of 10 ms per process
_HARMLESS = {"gpu_idle"}


@dataclass(frozen=True)
class Turn:
    """Seconds of a turn by the clock, and of its calls by the CUDA events of the runner's process."""

    seconds: float
    events: float


def evaluate(
    alone: Mapping[str, Sequence[Turn]], beside: Mapping[str, Sequence[Turn]], calls: Mapping[str, int]
) -> tuple[dict[str, Time], dict[str, Any]]:
    """Return the times of a call, and further figures for the log.

    Args:
        alone: our turns before the submission was loaded.
        beside: all turns after it was loaded.
        calls: the calls of a turn, by name; the reference has the maximum.
    """
    before, all_turns = alone["reference"], [*alone["reference"], *beside["reference"]]
    control = min(overhead_seconds(all_turns), GPU.max_control_growth * overhead_seconds(before))
    clock = {name: clock_time(turns, calls[name], calls["reference"], control) for name, turns in beside.items()}
    quicker = [our_event_times(turns, calls) for turns in (alone, beside)]  # slowing ours down gains nothing
    times = {name: min((phase[name] for phase in quicker), key=lambda time: time.milliseconds) for name in OURS}
    times[SUBMISSION] = clock[SUBMISSION]
    figures = {
        "times": {name: asdict(time) for name, time in times.items()},
        "clock_ms": {name: time.milliseconds for name, time in clock.items()},
        "claimed_ms": claimed_ms(beside[SUBMISSION], calls[SUBMISSION]),
        "calls": dict(calls),
        "control_ms": 1e3 * control,
        "controls_ms": {
            name: [1e3 * (turn.seconds - turn.events) for turn in turns["reference"]]
            for name, turns in (("alone", alone), ("beside", beside))
        },
    }
    return times, figures


def check_steady(alone: Mapping[str, Time], beside: Mapping[str, Time], record: Mapping[str, Any]) -> None:
    """Check that our solutions did not become slower.

    If they did, it is the submission's fault, unless there was a reason before it was loaded.

    Args:
        alone: the times of our solutions before the submission was loaded.
        beside: their times between the submission's turns.
        record: the state of the GPU before it was loaded, ``gpu_alone``, and the others on it then,
            ``others_on_gpu``.

    Raises:
        InvalidSubmissionError: if one became slower and nothing but the submission explains it.
        ReBenchError: if the GPU throttled, or others computed on it, before the submission was loaded.
    """
    try:
        for name in OURS:
            check_not_slowed_down(name, alone[name], beside[name], GPU.max_slowdown)
    except InvalidSubmissionError as fault:
        throttled = sorted(set(record["gpu_alone"]["throttle_reasons"] or []) - _HARMLESS)
        others = [process["name"] for process in record["others_on_gpu"]]
        if throttled or others:
            raise ReBenchError(
                f"the GPU was not steady before the submission was loaded (it throttled: {throttled}; others on it: "
                f"{others}): {fault}"
            ) from None
        raise


def check_host_free(busy_s: float, seconds: float) -> None:
    """Check that a submission left the host's cores alone while our solutions had their turn.

    Delays of our turns would count as control and be subtracted from the submission's time.

    Args:
        busy_s: CPU time of its processes in our turns.
        seconds: duration of our turns.

    Raises:
        InvalidSubmissionError: if it kept more than :attr:`Gpu.max_host_share` cores busy.
    """
    if busy_s > GPU.max_host_share * seconds + _CPU_GRAIN_S:
        raise InvalidSubmissionError(
            f"the host was kept busy out of turn: the submission's processes used {busy_s:.2f} s of processor time in "
            f"{seconds:.2f} s of baseline's and reference's turns; all work must be done when a call returns"
        )


def overhead_seconds(turns: Sequence[Turn]) -> float:
    """Return the fixed cost of a turn in seconds, from our own turns.

    Their process only runs our code, so its CUDA events are trusted.
    """
    return statistics.median(turn.seconds - turn.events for turn in turns)


def clock_time(turns: Sequence[Turn], calls: int, full: int, control: float) -> Time:
    """Return the time of a call by the clock, less ``control`` seconds of a turn.

    A turn of fewer than ``full`` calls has all of the control subtracted only if it is as long as full turns: being
    slow while calls are counted, to get fewer calls, gains nothing.
    """
    shares = [max(calls / full, min(1.0, turn.seconds / GPU.longest_turn_s)) for turn in turns]
    return Time.of([1e3 * (turn.seconds - control * share) / calls for turn, share in zip(turns, shares, strict=True)])


def event_time(turns: Sequence[Turn], calls: int) -> Time:
    """Return the time of a call by CUDA events, which is trusted only for our own solutions."""
    return Time.of([1e3 * turn.events / calls for turn in turns])


def our_event_times(turns: Mapping[str, Sequence[Turn]], calls: Mapping[str, int]) -> dict[str, Time]:
    """Return the times of a call of our solutions by CUDA events, by name."""
    return {name: event_time(turns[name], calls[name]) for name in OURS}


def claimed_ms(turns: Sequence[Turn], calls: int) -> float | None:
    """Return the milliseconds of a call that a runner's CUDA events claim, or None if they are not a number."""
    claim = event_time(turns, calls).milliseconds
    return claim if math.isfinite(claim) else None


def claimed_seconds(value: float) -> float:
    """Return the seconds that an untrusted process claims, NaN if impossible."""
    return value if abs(value) <= _MAX_CLAIM_S else math.nan
