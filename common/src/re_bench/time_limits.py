"""Limit wall-clock time without counting time in which the machine was busy."""

from __future__ import annotations

import re
import time
from pathlib import Path

MAX_STRETCH = 10
"""How many times its seconds a limit lasts at most, however busy the machine is."""
CPU_PRESSURE = Path("/proc/pressure/cpu")
_STALLED = re.compile(rb"^some .*total=(\d+)", re.MULTILINE)


class TimeLimit:
    """A limit of ``seconds`` from now.

    Time in which a program on this machine waited for a core does not count, up to :data:`MAX_STRETCH` times the limit.
    Linux reports it as "some" CPU pressure (Documentation/accounting/psi.rst); without that, all time counts.
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
        """Seconds left, at least 0, if the machine is idle from now on."""
        elapsed = self.elapsed_s
        counted = elapsed - min(elapsed, self._stall_s() - self._stalled)
        return max(0.0, min(self.seconds - counted, MAX_STRETCH * self.seconds - elapsed))

    @property
    def reached(self) -> bool:
        """Whether the time is over."""
        return self.elapsed_s >= self.seconds and self.remaining_s <= 0

    def describe(self, cpu_s: float | None = None) -> str:
        """Return the limit, and the wall-clock time if the machine was busy.

        Args:
            cpu_s: CPU seconds that the limited program has used, if known.
        """
        elapsed = self.elapsed_s
        if elapsed < 1.1 * self.seconds + 1:
            return f"{self.seconds:g} s"
        used = "" if cpu_s is None else f" with {cpu_s:.0f} s of CPU time"
        return f"{self.seconds:g} s (it took {elapsed:.0f} s of wall-clock time{used}; the machine was busy)"

    def _stall_s(self) -> float:
        """Return the seconds, since the machine started, in which at least one program waited for a core."""
        try:
            found = _STALLED.search(self._pressure.read_bytes())
        except OSError:
            return 0.0
        return int(found[1]) / 1e6 if found else 0.0
