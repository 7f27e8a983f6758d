"""Figures for the log, by which nothing is decided.

Where the seconds of a scoring go, how near times come to the memory's limit, and what a submission says of its kernels.
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
"""The environment variable that has a score's details tell of kernels, where it is not empty: it takes some 4 s."""
_MOST, _LONGEST_NAME, _LARGEST = 32, 200, 1e9


class Stopwatch:
    """Seconds by name, each from the end of the one before; what ends under one name twice is added up.

    Args:
        laps: where they are added, if not to new ones.
    """

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {} if laps is None else laps

    def lap(self, name: str) -> None:
        """End a phase."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._last, 6)
        self._last = now


def roofline(milliseconds: Mapping[str, float], copy_ms: float, peak_bandwidth: float) -> dict[str, Any]:
    """Return JSON values: for each time, the share of the peak bandwidth and the number of copies.

    The roofline model of Williams, Waterman and Patterson (2009), where memory is the limit: each element is read and
    written once at the least, which a copy of the same input does too.

    Args:
        milliseconds: the times of a call, by name.
        copy_ms: the time of a copy of one input in the same run.
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
