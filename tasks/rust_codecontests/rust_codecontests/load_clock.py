"""A clock for a submission's time that excludes the load of other programs."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from re_bench.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_SLOWDOWN = 3
"""Maximum wall-clock seconds that count as one, however busy the machine is."""
_CHILDREN = Path("/proc/thread-self/children")
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # columns of /proc/stat; later ones are included in the first two
_CPU_TIMES = slice(11, 15)  # of /proc/PID/stat after the name: user and system, and both of children that ended


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds since boot, of our cores and of processes."""

    busy: float
    """Busy seconds of the cores, including time stolen by the host; 0 if unknown."""
    stolen: float
    """Seconds stolen by the host."""
    own: float
    """Seconds of this process and its descendants, including those already reaped."""
    others: Mapping[int, float]
    """The same for each other visible process, by PID."""

    @classmethod
    def read(cls, cores: set[int]) -> Self:
        """Return the current times."""
        own = list(process_tree(os.getpid()))
        others = set[int]()
        if _CHILDREN.exists():  # missing in some kernels; without it our descendants would count as others
            others = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}.difference(own)
        return cls(*_core_times(cores), sum(_seconds_of(own).values()), _seconds_of(others))

    def seen_since(self, start: CpuTimes) -> float:
        """Return the CPU seconds of other visible processes and the host since ``start``."""
        grown = (seconds - start.others.get(process, 0.0) for process, seconds in self.others.items())
        return sum(max(seconds, 0.0) for seconds in grown) + self.stolen - start.stolen

    def others_since(self, start: CpuTimes) -> float:
        """Return the CPU seconds of our cores that others used.

        A submission can hide its work from ``own`` (by ignoring SIGCHLD), but cannot move it to ``others``.
        """
        unexplained = (self.busy - start.busy) - (self.own - start.own)
        return max(min(unexplained, self.seen_since(start)), 0.0)


class LoadClock:
    """Counts wall-clock time since its creation without the share of our cores that others used.

    Others are all visible processes that do not descend from this one, and the machine's host.
    """

    def __init__(self) -> None:
        self._cores = os.sched_getaffinity(0)
        self._started, self._start = time.monotonic(), CpuTimes.read(self._cores)

    def seconds(self) -> float:
        """Return the time since the creation of the clock, as it would be on an idle machine."""
        elapsed = time.monotonic() - self._started
        return max(elapsed / MAX_SLOWDOWN, elapsed * (1 - self._others_share(elapsed)))

    def load(self) -> dict[str, float]:
        """Return figures for the log: others' share of our cores, the number of cores, and the wall-clock time."""
        elapsed = time.monotonic() - self._started
        share = round(self._others_share(elapsed), 3)
        return {"cores": len(self._cores), "share_of_others": share, "seconds": round(elapsed, 1)}

    def _others_share(self, elapsed: float) -> float:
        others_s = CpuTimes.read(self._cores).others_since(self._start)
        return min(others_s / (len(self._cores) * max(elapsed, 1e-3)), 1.0)


def _core_times(cores: set[int]) -> tuple[float, float]:
    """Return the busy seconds of some cores, and how many of these the host stole."""
    busy = stolen = 0
    with suppress(OSError, ValueError):
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
            name, *words = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
                values = [int(word) for word in words[: _STEAL + 1]]
                busy += sum(values) - values[_IDLE] - values[_IOWAIT]
                stolen += values[_STEAL]
    return busy / _TICKS, stolen / _TICKS


def _seconds_of(processes: Iterable[int]) -> dict[int, float]:
    """Return the CPU seconds of each process, including its reaped children."""
    seconds = {}
    for process in processes:
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
            seconds[process] = sum(map(int, fields[_CPU_TIMES])) / _TICKS
    return seconds
