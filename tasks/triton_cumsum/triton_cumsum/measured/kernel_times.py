"""What a submission's process says of the kernels of one call, for the log; nothing is decided by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench.errors import InvalidSubmissionError
from triton_cumsum.measured.turn_times import SUBMISSION
from triton_cumsum.profiles import ELEMENTS, GPU

if TYPE_CHECKING:
    from re_bench.sandbox.untrusted import Untrusted

PROFILE_KERNELS = "RE_BENCH_PROFILE_KERNELS"
"""The environment variable that has a score's details tell of kernels, where it is not empty: it takes some 4 s."""
_MOST, _LONGEST_NAME, _LARGEST = 32, 200, 1e9


def claimed_kernels(process: Untrusted) -> dict[str, Any]:
    """Return JSON values: ``kernels``, the longest first, with their microseconds and launches, or an ``error``.

    CUPTI records them in the submission's process, after its turns, so they are a claim. A process that fails here has
    been timed already, and is none the worse for it.

    Args:
        process: the runner, with the submission loaded and memory for results.
    """
    try:
        value = process.call("profile", {"name": SUBMISSION, "length": ELEMENTS}, timeout_s=GPU.profile_s).value
        kernels: list[dict[str, Any]] = [
            {"name": str(name)[:_LONGEST_NAME], "launches": _number(launches), "us": _number(us)}
            for name, launches, us in value["kernels"]
        ]
    except InvalidSubmissionError as fault:
        return {"error": str(fault)}
    except (LookupError, TypeError, ValueError):
        return {"error": "the submission's process answered in another form"}
    return {"kernels": sorted(kernels, key=lambda kernel: -kernel["us"])[:_MOST]}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        raise ValueError(value)
    return value
