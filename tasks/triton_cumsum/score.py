"""The scorer of triton_cumsum: raw = ln(milliseconds) for 100,000,000 int32, lower is better.

Profile ``gpu`` times the submission in turns with our baseline and reference, which are its anchors. Profile ``cpu``
has no GPU to time. It proves the results bit-exact in Triton's interpreter, then counts what a replay of the
submission's steps moves and *models* the time on a named device.
"""

from __future__ import annotations

import importlib
import math
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import truth
from modelled import cost

from re_bench.errors import InvalidSubmissionError
from re_bench.gpu import state as gpu_state
from re_bench.scoring.score import Job, Measured, RunAnchors, main

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from re_bench.sandbox.untrusted import Untrusted

CALL_S = 30.0
"""Wall-clock guard of one call; a sensible kernel takes a second or two in the interpreter."""
ENVIRONMENT = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
UNIT = 65_536
"""The timed lengths are multiples of this, so that blocks up to this size divide them evenly."""


def measure(job: Job) -> Measured:
    """Check the submission for exactness, and time it where there is a GPU, else model its time."""
    return timed(job) if job.profile.device == "cuda" else modelled(job)


def timed(job: Job) -> Measured:
    """Check the submission and time it on the GPU; see ``measured/contest.py``."""
    gpu = gpu_state.identify()
    harness = "measured/player/gpu_player.py"
    ours = [job.task.directory / name for name in ("baseline", "reference")]
    with (
        ExitStack() as outer,
        job.untrusted(harness, gpu=gpu.uuid, show=False, also=ours) as home,
        job.untrusted(harness, gpu=gpu.uuid) as away,
    ):
        # Imports torch, while the players do.
        contest = importlib.import_module("measured.contest")
        found = contest.hold(job, gpu, home, away, outer)
    baseline, reference, own = (found.times[name] for name in ("baseline", "reference", "submission"))
    if own.milliseconds < found.floor_ms:
        raise InvalidSubmissionError(
            f"a time of {own.milliseconds:.4f} ms is below the {found.floor_ms:.4f} ms of reading and writing once "
            f"at the peak bandwidth of {gpu.name}"
        )
    message = (
        f"{own.milliseconds:.4f} ms (95 % interval {own.low:.4f} to {own.high:.4f}) for {cost.ELEMENTS:,} elements "
        f"on {gpu.name}; in the same run: baseline {baseline.milliseconds:.4f} ms, "
        f"reference {reference.milliseconds:.4f} ms"
    )
    anchors = RunAnchors(math.log(baseline.milliseconds), math.log(reference.milliseconds))
    return Measured(math.log(own.milliseconds), message, found.details, anchors if job.profile.in_run else None)


def modelled(job: Job) -> Measured:
    """Check the submission in Triton's interpreter, then model its time."""
    with (
        job.untrusted("modelled/player.py", environment=ENVIRONMENT) as player,
        job.untrusted("modelled/meter.py", environment=ENVIRONMENT, show=False) as meter,
    ):
        player.call("load", {"directory": str(job.submission)})
        # Only from here on does any input exist: the submission cannot have seen it.
        for case, other in zip(*(truth.cases(secrets.randbits(64)) for _ in range(2)), strict=True):
            job.progress(f"checking {case.label}")
            replay(meter, other.x, run(player, case.x, case.label), other.label)
        generator = np.random.default_rng(secrets.randbits(128))
        length = UNIT * int(generator.integers(8, 13))
        runs = []
        for n in (length // 8, length, 2 * length, 4 * length):
            job.progress(f"counting at {n} elements")
            trace = run(player, truth.disturbed(generator, n), f"{n} uniform values")
            # Other values: a trace that carries any part of an answer carries a wrong one.
            runs.append(replay(meter, truth.disturbed(generator, n), trace, f"{n} uniform values"))
    return extrapolated(length, runs)


def run(player: Untrusted, x: NDArray[np.int32], label: str) -> str:
    """Have the submission compute one input, compare it with the truth, and return the trace, a text not yet read."""
    args = {"length": x.size, "record": True}
    reply = player.call("run", args, inputs=[x], outputs=[x.nbytes], timeout_s=CALL_S)
    truth.compare(np.frombuffer(reply.outputs[0], np.int32), truth.prefix_sum(x), label)
    trace = reply.value.get("trace") if isinstance(reply.value, dict) else None
    if not isinstance(trace, str):
        raise InvalidSubmissionError(f"the submission's process returned no trace for {label}")
    return trace


def replay(meter: Untrusted, x: NDArray[np.int32], trace: str, label: str) -> list[cost.Step]:
    """Run the recorded steps where the submission's Python is not, and return what they cost."""
    args = {"trace": trace, "length": x.size}
    reply = meter.call("replay", args, inputs=[x], outputs=[x.nbytes], timeout_s=2 * CALL_S)
    where = (
        f"the recorded steps when replayed on other values, {label} (torch operators and Triton kernels must do all "
        "the work, and Python code must not depend on the values of x)"
    )
    truth.compare(np.frombuffer(reply.outputs[0], np.int32), truth.prefix_sum(x), where)
    try:
        steps: list[cost.Step] = cost.steps_of(reply.value["steps"])
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise InvalidSubmissionError(
            f"the replay of the recorded steps broke the count of their cost ({error!r})"
        ) from error
    return steps


def extrapolated(length: int, runs: list[list[cost.Step]]) -> Measured:
    """Return the score from the counts at an eighth of ``length``, at ``length``, twice and four times that."""
    seconds = cost.extrapolate(length, runs[1:], small=runs[0])
    least = cost.floor(cost.ELEMENTS)
    if seconds < least:
        raise InvalidSubmissionError(
            f"a modelled time of {seconds * 1e3:.4f} ms is below the {least * 1e3:.4f} ms of reading and writing once"
        )
    moved = sum(step.bytes for step in runs[-1]) / (4 * length)
    message = (
        f"modelled (not measured) {seconds * 1e3:.4f} ms for {cost.ELEMENTS:,} elements on an {cost.H200.name}: "
        f"{moved:.2f} bytes moved an element, {len(runs[-1])} launches"
    )
    steps = [{"name": step.name, "kind": step.kind, "bytes": step.bytes} for step in runs[-1]]
    details = {
        "hardware": f"modelled: {cost.H200.name}",
        "milliseconds": seconds * 1e3,
        "steps": steps,
        "length": length,
    }
    return Measured(math.log(seconds * 1e3), message, details)


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
