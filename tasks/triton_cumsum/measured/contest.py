"""How a submission is timed on a GPU: in turns with our baseline and reference, by a clock that it cannot reach.

A turn reveals new inputs, has a player call ``prefix_sum`` once on each, and ends when the results have been probed;
its time, less what a turn costs beside its calls, is shared among the calls. That cost is found on our own solutions,
as what the clock says beyond the CUDA events of a process that runs no code but ours; little more of it counts than
before the submission was loaded. Our solutions' own times are those events'. See ``docs/tasks/triton_cumsum.md``.
"""

from __future__ import annotations

import math
import os
import platform
import secrets
import statistics
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton
import truth
from modelled.cost import BYTES_PER_ELEMENT, ELEMENTS

from measured import referee
from measured.referee import Plan, Referee
from re_bench.errors import InvalidSubmissionError, ReBenchError, UsageError
from re_bench.gpu import state as gpu_state
from re_bench.gpu.lock import exclusive
from re_bench.gpu.timing import Time, check_not_slowed_down, take_turns
from re_bench.guest.device_memory import DeviceMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from re_bench.gpu.state import Gpu
    from re_bench.sandbox.untrusted import Untrusted
    from re_bench.scoring.score import Job

OURS = ("baseline", "reference")
SUBMISSION = "submission"
ROUNDS = 7
ALONE = 5
"""Rounds of our own turns before the submission is loaded."""
MOST_DISTURBED = 0.02
MOST_CONTROL = 1.2
"""What a turn costs beside its calls may be this much more than before the submission was loaded, and no more."""
LONGEST_TURN_S = 0.5
"""Turns of slow submissions have fewer calls, so that they take about this long."""
CALL_S = 20.0
"""Wall-clock guard of one call, as in the original task."""
STEP_BACK = 1 << 16
LARGEST_S = 1e6


@dataclass(frozen=True)
class Found:
    """What a contest found."""

    times: Mapping[str, Time]
    """The times of a call of ``"baseline"``, ``"reference"`` and ``"submission"``."""
    floor_ms: float
    """What reading and writing every element once takes at the memory's peak bandwidth."""
    details: Mapping[str, Any]


class Stopwatch:
    """Seconds of the phases of a scoring, for the log."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a phase."""
        now = time.monotonic()
        self.laps[name], self._last = round(now - self._last, 3), now


@dataclass(frozen=True)
class Turn:
    """Seconds of a turn by the clock, and of its calls by the CUDA events of the player's process."""

    seconds: float
    events: float


class Seat:
    """A player with the memory it shares with the scorer.

    Args:
        player: a sandboxed process with the harness.
        given: the memory that it sees its inputs in; not another's, who could write to it.
        arena: the memory that its results will lie in.
        judge: who gives it inputs and looks at its results.
    """

    def __init__(self, player: Untrusted, given: DeviceMemory, arena: DeviceMemory, judge: Referee) -> None:
        self.player, self.given, self.arena, self.judge = player, given, arena, judge
        self.shown = referee.view(given).reshape(-1, judge.stride)
        self.results = referee.view(arena)
        self.results.fill_(referee.POISON)
        torch.cuda.synchronize()
        player.call("settle", device_outputs=[arena])

    def load(self, solutions: Mapping[str, Path]) -> None:
        """Have the player import solutions, by name."""
        self.player.call("load", {"solutions": {name: str(path) for name, path in solutions.items()}})

    def turn(self, name: str, calls: int, length: int) -> Turn:
        """Return the time of one turn of the solution ``name``, all of whose results are exact.

        Raises:
            InvalidSubmissionError: if one is not, or was not there when the player said so.
        """
        nonce = secrets.token_hex()
        args = {"name": name, "calls": calls, "length": length, "stride": self.judge.stride, "nonce": nonce}
        shared: dict[str, Any] = {"device_inputs": [self.given], "device_outputs": [self.arena]}
        self.judge.prepare(self.shown, calls, length)
        self.player.call("wake", timeout_s=CALL_S)
        started = time.perf_counter()
        self.judge.reveal(self.shown)
        value = self.player.call("turn", args, **shared, timeout_s=CALL_S * calls).value
        offsets = referee.offsets_of(value, nonce, calls, length, self.arena.nbytes)
        there = self.judge.probe(self.results, offsets)
        seconds = time.perf_counter() - started
        self.judge.check(self.results, offsets, length)
        if not there:
            raise InvalidSubmissionError("a result was not complete when the submission's process said so")
        for offset in offsets:  # the player takes this memory for the next turn's results
            self.results[offset // 4 : offset // 4 + length].fill_(referee.POISON)
        return Turn(seconds, _claimed(value.get("events_s")))


def hold(job: Job, gpu: Gpu, ours: Untrusted, theirs: Untrusted, outer: ExitStack) -> Found:
    """Time a submission beside our baseline and reference, alone on the GPU.

    Args:
        job: the submission.
        gpu: where.
        ours: a player for our solutions.
        theirs: a player that sees the submission.
        outer: what outlives the players; the GPU stays locked until it ends, for they hold its memory.

    Raises:
        InvalidSubmissionError: if the submission is wrong somewhere, or kept the GPU busy out of turn.
        UsageError: if torch does not see the GPU, or too little of its memory is free.
        ReBenchError: if one of our solutions fails, or the GPU is not steady.
    """
    if not torch.cuda.is_available():
        raise UsageError(f"torch {torch.__version__} here sees no GPU; install its CUDA build, or use --profile cpu")
    watch = Stopwatch()
    outer.enter_context(exclusive(gpu.uuid, f"timing a submission to {job.task.name}"))
    watch.lap("waiting for the GPU")
    floor_ms = 1e3 * BYTES_PER_ELEMENT * ELEMENTS / gpu.peak_bandwidth
    with ExitStack() as stack:
        before = gpu_state.snapshot(gpu.uuid)
        plan = Plan.of(gpu_state.free_memory(gpu.index), ELEMENTS)
        judge = stack.enter_context(Referee(plan.calls, ELEMENTS))
        with _our_fault("the players"):
            # Both processes are on the GPU from here on, since changing over takes longer between more; one has no
            # code of the submission's yet.
            home, away = (_seat(stack, *pair, judge) for pair in ((ours, plan.ours), (theirs, plan.theirs)))
            home.load({name: job.task.directory / name for name in OURS})
        turns = {name: partial(_our_turn, home, name, plan.calls) for name in OURS}
        take_turns(turns, 1)  # compiles, and wakes the clocks up
        alone = take_turns(turns, ALONE)
        watch.lap("ours alone")
        away.load({SUBMISSION: job.submission})
        try:
            calls = _prove(job, away, plan.calls)
            watch.lap("proof")
            job.progress("taking turns")
            beside = take_turns({**turns, SUBMISSION: partial(away.turn, SUBMISSION, calls, ELEMENTS)}, ROUNDS)
        except torch.OutOfMemoryError:
            raise InvalidSubmissionError(
                "the submission keeps so much of the GPU's memory that its results cannot be checked"
            ) from None
        watch.lap("turns")
        record = _record(gpu, judge.copy_ms(home.shown), before) | {"phases_s": watch.laps}
    times, figures = _evaluate(alone, beside, plan.calls, calls)
    _check_steady(_events_of_ours(alone, plan.calls), times, record)
    return Found(times, floor_ms, record | figures)


def _seat(stack: ExitStack, player: Untrusted, nbytes: int, judge: Referee) -> Seat:
    given = stack.enter_context(DeviceMemory(4 * judge.calls * judge.stride))
    return Seat(player, given, stack.enter_context(DeviceMemory(nbytes)), judge)


@contextmanager
def _our_fault(what: str) -> Iterator[None]:
    """Have what would be a submission's fault be ours: none of its code has a part in it."""
    try:
        yield
    except InvalidSubmissionError as fault:
        raise ReBenchError(f"{what} failed, without the submission: {fault}") from None


def _our_turn(home: Seat, name: str, calls: int) -> Turn:
    with _our_fault(f"our own {name}"):
        return home.turn(name, calls, ELEMENTS)


def _evaluate(
    alone: Mapping[str, Sequence[Turn]], beside: Mapping[str, Sequence[Turn]], full: int, calls: int
) -> tuple[dict[str, Time], dict[str, Any]]:
    """Return the times of a call, and further figures for the log.

    Args:
        alone: our turns before the submission was loaded.
        beside: all turns after it.
        full: calls of our turns.
        calls: calls of the submission's turns.
    """
    control = min(_control(beside, OURS), MOST_CONTROL * _control(alone, OURS)) / full
    counts = {**dict.fromkeys(OURS, full), SUBMISSION: calls}
    times = _events_of_ours(beside, full) | {SUBMISSION: _clocked(beside[SUBMISSION], calls, control)}
    figures = {
        "times": {name: asdict(found) for name, found in times.items()},
        "clock_ms": {name: _clocked(beside[name], count, control).milliseconds for name, count in counts.items()},
        "claimed_ms": _claim(beside[SUBMISSION], calls),
        "calls": counts,
        "control_ms": 1e3 * control,
    }
    return times, figures


def _check_steady(alone: Mapping[str, Time], beside: Mapping[str, Time], record: Mapping[str, Any]) -> None:
    """Check that our solutions did not become slower, and see who is to blame if they did."""
    try:
        for name in OURS:
            check_not_slowed_down(name, alone[name], beside[name], MOST_DISTURBED)
    except InvalidSubmissionError as fault:
        throttled = record["gpu_after"]["throttle_reasons"]
        if throttled or record["others_on_gpu"]:
            others = [process["name"] for process in record["others_on_gpu"]]
            raise ReBenchError(
                f"the GPU is not steady (it throttles: {throttled}; others on it: {others}): {fault}"
            ) from None
        raise


def _control(turns: Mapping[str, Sequence[Turn]], names: Iterable[str]) -> float:
    """Return the seconds that a turn takes beside its calls, found on our own solutions.

    Their process runs no code but ours, so its CUDA events can be believed.
    """
    return statistics.median(turn.seconds - turn.events for name in names for turn in turns[name])


def _claim(turns: Sequence[Turn], calls: int) -> float | None:
    claimed = _events(turns, calls).milliseconds
    return claimed if math.isfinite(claimed) else None


def _events(turns: Sequence[Turn], calls: int) -> Time:
    """Return the time of a call by CUDA events, which is exact for our own solutions and a claim of any other's."""
    return Time.of([1e3 * turn.events / calls for turn in turns])


def _events_of_ours(turns: Mapping[str, Sequence[Turn]], calls: int) -> dict[str, Time]:
    return {name: _events(turns[name], calls) for name in OURS}


def _clocked(turns: Sequence[Turn], calls: int, control: float) -> Time:
    """Return the time of a call by the clock, less ``control`` seconds.

    Turns of few calls have no more removed from each than full turns: a submission that is slow while calls are
    counted, so as to have few, gains nothing.
    """
    return Time.of([1e3 * (turn.seconds / calls - control) for turn in turns])


def _prove(job: Job, away: Seat, calls: int) -> int:
    """Check the submission on inputs of all kinds, and return how many calls its turns will have."""
    cases = list(truth.cases(secrets.randbits(64)))
    referee.check_truth(truth.prefix_sum(cases[-1].x), cases[-1].x)
    for case in cases:
        job.progress(f"checking {case.label}")
        given = {"inputs": [case.x], "outputs": [case.x.nbytes]}
        reply = away.player.call("check", {"name": SUBMISSION}, **given, timeout_s=3 * CALL_S)
        truth.compare(np.frombuffer(reply.outputs[0], np.int32), truth.prefix_sum(case.x), case.label)
    job.progress("checking long inputs")
    away.turn(SUBMISSION, 2, ELEMENTS - 1 - secrets.randbelow(STEP_BACK))
    away.turn(SUBMISSION, 1, ELEMENTS)  # Triton may compile for this length anew
    seconds = away.turn(SUBMISSION, 1, ELEMENTS).seconds
    return max(1, min(calls, int(LONGEST_TURN_S / seconds)))


def _claimed(value: Any) -> float:
    """Return what an untrusted process calls a number, NaN where it is none."""
    return float(value) if isinstance(value, int | float) and abs(value) <= LARGEST_S else math.nan


def _record(gpu: Gpu, copy_ms: float, before: Mapping[str, Any]) -> dict[str, Any]:
    after = gpu_state.snapshot(gpu.uuid)
    return {
        "hardware": gpu.name,
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__},
        "driver": gpu.driver,
        "copy_ms": copy_ms,
        "gpu_before": before,
        "gpu_after": after,
        "others_on_gpu": gpu_state.other_processes(after, [os.getpid()]),
    }
