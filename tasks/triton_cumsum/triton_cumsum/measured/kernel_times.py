"""What a submission's process says of the kernels of one call, for the log; nothing is decided by it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from re_bench.errors import InvalidSubmissionError
from triton_cumsum.measured.turn_times import SUBMISSION
from triton_cumsum.profiles import ELEMENTS, GPU
from triton_cumsum.sandboxed import gpu_runner

if TYPE_CHECKING:
    from re_bench.sandbox.calls import SandboxedProcess

PROFILE_KERNELS = "RE_BENCH_PROFILE_KERNELS"
"""The environment variable that has a score's details tell of kernels, where it is not empty: it takes some 4 s."""
_MOST, _LONGEST_NAME, _LARGEST = 32, 200, 1e9


def claimed_kernels(process: SandboxedProcess) -> dict[str, Any]:
    """Return JSON values: ``kernels``, the longest first, with their microseconds and launches, or an ``error``.

    CUPTI records them in the submission's process, after its turns, so they are a claim. A process that fails here has
    been timed already, and is none the worse for it.

    Args:
        process: the runner, with the submission loaded and memory for results.
    """
    try:
        claimed = process.call_within(GPU.profile_s, gpu_runner.profile, SUBMISSION, ELEMENTS)
    except InvalidSubmissionError as fault:
        return {"error": str(fault)}
    if not all(0 <= number <= _LARGEST for kernel in claimed for number in (kernel.launches, kernel.us)):
        return {"error": "the submission's process claims times or launches that cannot be"}
    longest = sorted(claimed, key=lambda kernel: -kernel.us)[:_MOST]
    return {"kernels": [asdict(replace(kernel, name=kernel.name[:_LONGEST_NAME])) for kernel in longest]}
