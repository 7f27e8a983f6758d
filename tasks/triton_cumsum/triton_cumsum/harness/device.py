"""What the time model knows of a device: for the scorer, and for the meter, which keeps the programs' clocks.

Times are seconds, rates are per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Rates:
    """What the whole device, or one program alone, does in a second; the words are those of ``memory_counter.COUNTS``.

    ``wait_s`` is the seconds of one wait; on the whole device other programs run meanwhile, and it is zero. ``polls``
    is none of one program, whose clock waits for the words instead.
    """

    bytes: float
    operations: float
    scanned: float
    reduced: float
    exchanged: float
    lines: float
    partial: float
    polls: float = math.inf
    wait_s: float = 0.0


@dataclass(frozen=True)
class Device:
    """A device; ``tools/measure_device.py`` measures all but what is said here and ``flops``.

    A program's ``lines`` and ``partial`` are the device's ``lines`` over its multiprocessors, one a cycle: assumed.

    ``polls`` is how often in a second all that fits on the device, 16 warps on each of 132 multiprocessors, asks for
    words of other programs, ``hop_s`` each time, counted for each warp. One such time saved made the reference
    faster by 17 us of 12,207 programs (``docs/tasks/triton_cumsum.md``), and this is 16 us.

    ``hop_s`` is the time from one program's store until another that waits for it has the value: what each further
    program of a chain of waiting ones takes (``tools/variants.py``, ``chain``), less the wait for the load itself.
    """

    name: str
    rates: Rates
    program: Rates
    scan_bandwidth: float
    launch_s: float
    host_launch_s: float
    host_operator_s: float
    flops: float
    hop_s: float
    source: str

    @property
    def bandwidth(self) -> float:
        """Bytes that a copy reads and writes in a second."""
        return self.rates.bytes


H200 = Device(
    name="NVIDIA H200",
    rates=Rates(
        bytes=4.07e12,
        operations=34.9e12,
        scanned=2.64e12,
        reduced=7.4e12,
        exchanged=12.3e12,
        lines=250e9,
        partial=21.2e9,
        polls=132 * 16 / 0.7e-6,
    ),
    program=Rates(
        bytes=82.7e9,
        operations=33.4e9,
        scanned=12.2e9,
        reduced=78e9,
        exchanged=72.1e9,
        lines=1.9e9,
        partial=1.9e9,
        wait_s=0.141e-6,
    ),
    scan_bandwidth=2.58e12,
    launch_s=0.81e-6,
    host_launch_s=8.5e-6,
    host_operator_s=5.4e-6,
    flops=67e12,
    hop_s=0.7e-6,
    source=(
        "measured 2026-11-21 and 2026-11-22 on NVIDIA H200s, driver 580.159.04, torch 2.11.0+cu130, triton 3.6.0; "
        "flops: the data sheet's figure for fp32; "
        "hop_s: fitted to one kernel; a program's lines and partial, and polls: assumed"
    ),
)


def work_seconds(counts: Mapping[str, float], rates: Rates) -> float:
    """Return the time that the whole device takes for ``counts``, under the names of ``memory_counter.COUNTS``."""
    overlapped: float = max(counts[name] / getattr(rates, name) for name in ("bytes", "operations", "lines"))
    added: float = sum(counts[name] / getattr(rates, name) for name in _ADDED)
    return overlapped + added


def program_seconds(counts: Mapping[str, float], rates: Rates) -> float:
    """Return the time of one program alone, for the same counts."""
    at_rates: float = sum(counts[name] / getattr(rates, name) for name in _RATED)
    return at_rates + counts["waits"] * rates.wait_s


_ADDED = ("scanned", "reduced", "exchanged", "partial", "polls")
_RATED = ("bytes", "operations", "lines", *_ADDED)
