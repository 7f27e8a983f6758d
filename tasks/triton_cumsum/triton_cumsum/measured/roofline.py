"""How near times come to what the GPU's memory allows: shares of its peak bandwidth, and times of a copy.

The roofline model of Williams, Waterman and Patterson (2009), where memory is the limit: each element is read and
written once at the least, which a copy of the same input does too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from triton_cumsum.profiles import BYTES_PER_ELEMENT, ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGITS = 4


def roofline(milliseconds: Mapping[str, float], copy_ms: float, peak_bandwidth: float) -> dict[str, Any]:
    """Return JSON values for the log: for each time, the share of the peak bandwidth and the number of copies.

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
