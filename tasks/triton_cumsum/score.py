"""The scorer of triton_cumsum: raw = ln(milliseconds) for 100,000,000 int32, lower is better.

Profile ``cpu`` has no GPU to time. It proves the results bit-exact in Triton's interpreter, then
counts what a replay of the submission's steps moves and *models* the time on a named device.
"""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import truth
from modelled import cost

from re_bench.errors import Invalid
from re_bench.score import Job, Measured, main

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from re_bench.isolation.untrusted import Untrusted

CALL_S = 30.0
"""Wall-clock guard of one call; a sensible kernel takes a second or two in the interpreter."""
ENVIRONMENT = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
UNIT = 65_536
"""The timed lengths are multiples of this, so that blocks up to this size divide them evenly."""


def measure(job: Job) -> Measured:
    """Check the submission for exactness, then model its time."""
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
    return modelled(length, runs)


def run(player: Untrusted, x: NDArray[np.int32], label: str) -> str:
    """Have the submission compute one input, compare it with the truth, and return the trace, a text not yet read."""
    args = {"length": x.size, "record": True}
    reply = player.call("run", args, inputs=[x], outputs=[x.nbytes], timeout_s=CALL_S)
    compare(np.frombuffer(reply.outputs[0], np.int32), truth.prefix_sum(x), label)
    trace = reply.value.get("trace") if isinstance(reply.value, dict) else None
    if not isinstance(trace, str):
        msg = f"the submission's process returned no trace for {label}"
        raise Invalid(msg)
    return trace


def replay(meter: Untrusted, x: NDArray[np.int32], trace: str, label: str) -> list[cost.Step]:
    """Run the recorded steps where the submission's Python is not, and return what they cost."""
    args = {"trace": trace, "length": x.size}
    reply = meter.call("replay", args, inputs=[x], outputs=[x.nbytes], timeout_s=2 * CALL_S)
    where = (
        f"the recorded steps when replayed on other values, {label} (torch operators and Triton kernels must do all "
        "the work, and Python code must not depend on the values of x)"
    )
    compare(np.frombuffer(reply.outputs[0], np.int32), truth.prefix_sum(x), where)
    try:
        steps: list[cost.Step] = cost.steps_of(reply.value["steps"])
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        msg = f"the replay of the recorded steps broke the count of their cost ({error!r})"
        raise Invalid(msg) from error
    return steps


def compare(got: NDArray[np.int32], expected: NDArray[np.int32], label: str) -> None:
    """Raise ``Invalid`` with the first index at which the arrays differ."""
    wrong = np.flatnonzero(got != expected)
    if wrong.size:
        first = int(wrong[0])
        msg = (
            f"wrong result for {label}: first at index {first}, got {got[first]}, expected {expected[first]}; "
            f"{wrong.size} of {expected.size} elements differ"
        )
        raise Invalid(msg)


def modelled(length: int, runs: list[list[cost.Step]]) -> Measured:
    """Return the score from the counts at an eighth of ``length``, at ``length``, twice and four times that."""
    seconds = cost.extrapolate(length, runs[1:], small=runs[0])
    least = cost.floor(cost.ELEMENTS)
    if seconds < least:
        msg = f"a modelled time of {seconds * 1e3:.4f} ms is below the {least * 1e3:.4f} ms of reading and writing once"
        raise Invalid(msg)
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
