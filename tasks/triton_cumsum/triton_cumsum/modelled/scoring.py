"""Score a submission without a GPU: check it in Triton's interpreter, count what its steps move, model the time.

Two sandboxed processes take part. The runner calls the submission and records its steps as a trace; the meter replays
the trace on other values and counts. Truth, model and score are here only.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np

from re_bench.errors import InvalidSubmissionError
from triton_cumsum import grading
from triton_cumsum.modelled import cost
from triton_cumsum.profiles import CPU, ELEMENTS
from triton_cumsum.timing import Timing

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from re_bench.sandbox.untrusted import Untrusted

    from re_bench.scoring.score import Job


def run(job: Job) -> Timing:
    """Check the submission in Triton's interpreter, then model its time.

    Raises:
        InvalidSubmissionError: if it is wrong or refused, or its time is below the floor.
    """
    with job.untrusted("harness/cpu_runner.py", environment=CPU.environment) as runner:
        runner.call("load", {"directory": str(job.submission)})
        # Only from here on does any input exist: the submission cannot have seen it.
        checks = zip(*(grading.cases(secrets.randbits(64)) for _ in range(2)), strict=True)
        case, other = next(checks)
        trace = record(runner, case.x, case.label)  # what gives none is refused before the meter starts
        with job.untrusted("harness/meter.py", environment=CPU.environment, show=False) as meter:
            replay(meter, other.x, trace, other.label)
            for case, other in checks:
                job.progress(f"checking {case.label}")
                replay(meter, other.x, record(runner, case.x, case.label), other.label)
            generator = np.random.default_rng(secrets.randbits(128))
            length = CPU.length_unit * int(generator.integers(CPU.length_units.start, CPU.length_units.stop))
            runs = []
            for n in (length // 8, length, 2 * length, 4 * length):
                job.progress(f"counting at {n} elements")
                trace = record(runner, grading.uniform_with_outliers(generator, n), f"{n} uniform values")
                # Other values: a trace that carries any part of an answer carries a wrong one.
                runs.append(replay(meter, grading.uniform_with_outliers(generator, n), trace, f"{n} uniform values"))
    return extrapolate(length, runs)


def record(runner: Untrusted, x: NDArray[np.int32], label: str) -> str:
    """Have the submission compute one input, compare it with the truth, and return the trace, a text not yet read.

    Raises:
        InvalidSubmissionError: if the result is wrong, or there is no trace.
    """
    args = {"length": x.size, "record": True}
    reply = runner.call("run", args, inputs=[x], outputs=[x.nbytes], timeout_s=CPU.call_s)
    grading.compare(np.frombuffer(reply.outputs[0], np.int32), grading.prefix_sum(x), label)
    trace = reply.value.get("trace") if isinstance(reply.value, dict) else None
    if not isinstance(trace, str):
        raise InvalidSubmissionError(f"the submission's process returned no trace for {label}")
    return trace


def replay(meter: Untrusted, x: NDArray[np.int32], trace: str, label: str) -> list[cost.Step]:
    """Run the recorded steps where the submission's Python is not, and return what they cost.

    Raises:
        InvalidSubmissionError: if the steps are refused, compute something wrong, or cannot be counted.
    """
    args = {"trace": trace, "length": x.size}
    reply = meter.call("replay", args, inputs=[x], outputs=[x.nbytes], timeout_s=CPU.replay_s)
    what = (
        f"the recorded steps when replayed on other values, {label} (torch operators and Triton kernels must do all "
        "the work, and Python code must not depend on the values of x)"
    )
    grading.compare(np.frombuffer(reply.outputs[0], np.int32), grading.prefix_sum(x), what)
    try:
        steps: list[cost.Step] = cost.parse_steps(reply.value["steps"])
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise InvalidSubmissionError(
            f"the replay of the recorded steps broke the count of their cost ({error!r})"
        ) from error
    return steps


def extrapolate(length: int, runs: list[list[cost.Step]]) -> Timing:
    """Return the modelled time from the counts at an eighth of ``length``, at ``length``, twice and four times that.

    Raises:
        InvalidSubmissionError: if it is below that of reading and writing each element once.
    """
    seconds = cost.extrapolate(length, runs[1:], small=runs[0])
    floor = cost.floor(ELEMENTS)
    if seconds < floor:
        raise InvalidSubmissionError(
            f"a modelled time of {seconds * 1e3:.4f} ms is below the {floor * 1e3:.4f} ms of reading and writing once"
        )
    moved = sum(step.bytes for step in runs[-1]) / (4 * length)
    message = f"modelled, not measured, for {ELEMENTS:,} elements on an {cost.H200.name}"
    details = {
        "hardware": f"modelled: {cost.H200.name}",
        "milliseconds": seconds * 1e3,
        "bytes_an_element": round(moved, 3),
        "steps": [{"name": step.name, "kind": step.kind, "bytes": step.bytes} for step in runs[-1]],
        "length": length,
    }
    return Timing(seconds * 1e3, message, details)
