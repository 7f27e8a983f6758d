"""Compute figures for the log that do not affect the score.

The figures are the durations of a scoring run's phases, times relative to the memory bandwidth, and the kernels that
the submission's process claims to have launched.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from re_bench.errors import InvalidSubmissionError
from triton_cumsum.measured.turn_times import SUBMISSION
from triton_cumsum.profiles import BYTES_PER_ELEMENT, ELEMENTS, GPU
from triton_cumsum.sandboxed import gpu_runner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.sandbox.calls import SandboxedProcess

_DIGITS = 4
PROFILE_KERNELS = "RE_BENCH_PROFILE_KERNELS"
"""If this environment variable is not empty, a score's details include the kernels; this takes about 4 s."""
_MAX_KERNELS, _MAX_NAME, _MAX_VALUE = 32, 200, 1e9


class Stopwatch:
    """Measure the durations of consecutive phases; durations of phases with the same name are added.

    Args:
        laps: a dictionary to add the seconds to, by name; None for a new one.
    """

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {} if laps is None else laps

    def lap(self, name: str) -> None:
        """End the phase ``name``, which started at the end of the previous phase."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._last, 6)
        self._last = now


def roofline(milliseconds: Mapping[str, float], copy_ms: float, peak_bandwidth: float) -> dict[str, Any]:
    """Return each time as a share of the peak bandwidth and as a multiple of a copy's time, as JSON values.

    This is the memory-bound roofline of Williams, Waterman and Patterson (2009): each element is read and written at
    least once, as in a copy of the input.

    Args:
        milliseconds: the times of a call, by name.
        copy_ms: the time of copying one input in the same scoring run.
        peak_bandwidth: bytes per second between the GPU and its memory.
    """
    moved = BYTES_PER_ELEMENT * ELEMENTS

    def share(time_ms: float) -> float:
        return round(moved / (1e-3 * time_ms) / peak_bandwidth, _DIGITS)

    return {
        "bytes": moved,
        "peak_gb_per_s": round(peak_bandwidth / 1e9, 1),
        "copy_ms": copy_ms,
        "share_of_peak": {"copy": share(copy_ms), **{name: share(time) for name, time in milliseconds.items()}},
        "copies": {name: round(time / copy_ms, _DIGITS) for name, time in milliseconds.items()},
    }


def claimed_kernels(process: SandboxedProcess) -> dict[str, Any]:
    """Return the submission's ``kernels`` with their durations, longest first, or an ``error``, as JSON values.

    CUPTI records the kernels in the submission's process after the turns, so the records are untrusted. An error does
    not affect the score.

    Args:
        process: the runner, which has loaded the submission and has memory for results.
    """
    try:
        claimed = process.call_within(GPU.profile_s, gpu_runner.profile, SUBMISSION, ELEMENTS)
    except InvalidSubmissionError as fault:
        return {"error": str(fault)}
    if not all(0 <= number <= _MAX_VALUE for kernel in claimed for number in (kernel.launches, kernel.us)):
        return {"error": "the submission's process claims impossible times or numbers of launches"}
    longest = sorted(claimed, key=lambda kernel: -kernel.us)[:_MAX_KERNELS]
    return {"kernels": [asdict(replace(kernel, name=kernel.name[:_MAX_NAME])) for kernel in longest]}
