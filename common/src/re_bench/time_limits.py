"""Limit wall-clock time, not counting the time during which the machine is overloaded."""

from __future__ import annotations

import re
import time
from pathlib import Path

MAX_STRETCH = 10
"""However busy the machine is, a limit of ``n`` seconds is reached after ``MAX_STRETCH * n`` seconds."""
CPU_PRESSURE = Path("/proc/pressure/cpu")
_STALLED = re.compile(rb"^some .*total=(\d+)", re.MULTILINE)


class TimeLimit:
    """A limit of ``seconds`` from now.

    Time during which any program on this machine waits for a core does not count, but the limit is reached after
    :data:`MAX_STRETCH` times ``seconds`` at the latest. Linux reports such waiting as "some" CPU pressure
    (Documentation/accounting/psi.rst). If the kernel does not report it, all time counts.
    """

    def __init__(self, seconds: float, *, pressure: Path = CPU_PRESSURE) -> None:
        self.seconds = seconds
        self._pressure = pressure
        self._started = time.monotonic()
        self._stalled = self._stall_s()

    @property
    def elapsed_s(self) -> float:
        """Seconds of wall-clock time since the start."""
        return time.monotonic() - self._started

    @property
    def remaining_s(self) -> float:
        """Seconds left, at least 0, if no program waits for a core from now on."""
        elapsed = self.elapsed_s
        counted = elapsed - min(elapsed, self._stall_s() - self._stalled)
        return max(0.0, min(self.seconds - counted, MAX_STRETCH * self.seconds - elapsed))

    @property
    def reached(self) -> bool:
        """Whether the limit is reached."""
        return self.elapsed_s >= self.seconds and self.remaining_s <= 0

    def describe(self, cpu_s: float | None = None) -> str:
        """Return the limit as text, with the wall-clock time if the machine was busy.

        Args:
            cpu_s: CPU seconds that the limited program has used, if known.
        """
        elapsed = self.elapsed_s
        if elapsed < 1.1 * self.seconds + 1:
            return f"{self.seconds:g} s"
        used = "" if cpu_s is None else f" with {cpu_s:.0f} s of CPU time"
        return f"{self.seconds:g} s (it took {elapsed:.0f} s of wall-clock time{used}; the machine was busy)"

    def _stall_s(self) -> float:
        """Return for how many seconds, since the machine started, at least one program waited for a core."""
        try:
            found = _STALLED.search(self._pressure.read_bytes())
        except OSError:
            return 0.0
        return int(found[1]) / 1e6 if found else 0.0
