"""Limit the time of a program, not counting the time during which it waits for a core of a busy machine."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from re_bench.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_STRETCH = 10
"""However busy the machine is, a limit of ``n`` seconds is reached after ``MAX_STRETCH * n`` seconds."""


class CoreTime(NamedTuple):
    """How long a thread has run on a core and has waited for one, in seconds."""

    ran: float
    waited: float


class TimeLimit:
    """A limit of ``seconds`` of wall-clock time from now.

    Time during which the limited processes are ready to run but wait for a core does not count, but the limit is
    reached after :data:`MAX_STRETCH` times ``seconds`` at the latest. Of several threads, the longest wait counts, but
    not what they wait for each other: the time for which all cores together would have run them is no wait.

    Args:
        seconds: the limit.
        waits: returns how long each thread has run and waited so far, as :func:`core_waits` does.
        started: whether the threads exist already; their waiting until the first check does not count then.
    """

    def __init__(self, seconds: float, waits: Callable[[], Mapping[int, CoreTime]], *, started: bool) -> None:
        self.seconds = seconds
        self._waits = waits
        self._started = time.monotonic()
        self._before: Mapping[int, CoreTime] | None = None if started else {}
        self._ran: dict[int, float] = {}
        self._longest_wait = self._waited = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds of wall-clock time since the start."""
        return time.monotonic() - self._started

    def check(self) -> float:
        """Return the seconds left, at least 0, if no thread waits for a core from now on."""
        times, elapsed = self._waits(), self.elapsed_s
        if self._before is None:
            self._before = times
        for thread, (ran, waited) in times.items():
            before = self._before.get(thread, CoreTime(0.0, 0.0))
            self._ran[thread] = ran - before.ran
            self._longest_wait = max(self._longest_wait, waited - before.waited)
        own = sum(self._ran.values()) / len(os.sched_getaffinity(0))
        self._waited = max(self._waited, min(self._longest_wait, elapsed - own))
        return max(0.0, min(self.seconds + self._waited, MAX_STRETCH * self.seconds) - elapsed)

    @property
    def reached(self) -> bool:
        """Whether the limit is reached."""
        return self.elapsed_s >= self.seconds and self.check() <= 0

    def describe(self, cpu_s: float | None = None) -> str:
        """Return the limit as text, with the wall-clock time if the machine was busy.

        Args:
            cpu_s: CPU seconds that the limited program has used, if known.
        """
        elapsed = self.elapsed_s
        if self._waited < 0.1 * self.seconds + 1:
            return f"{self.seconds:g} s"
        used = "" if cpu_s is None else f" with {cpu_s:.0f} s of CPU time"
        return f"{self.seconds:g} s (it took {elapsed:.0f} s of wall-clock time{used}; the machine was busy)"


def core_waits(root: int | None = None) -> dict[int, CoreTime]:
    """Return how long each thread of a process tree has run and has waited for a core, by thread ID.

    Linux counts this in ``/proc/PID/task/TID/schedstat`` (Documentation/scheduler/sched-stats.rst); without it, the
    result is empty.

    Args:
        root: PID of the process at the top; None for this process.
    """
    waits = {}
    for pid in process_tree(root or os.getpid()):
        with suppress(OSError, ValueError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError, ValueError, IndexError):
                    ran, waited, _slices = map(int, (thread / "schedstat").read_bytes().split())
                    waits[int(thread.name)] = CoreTime(ran / 1e9, waited / 1e9)
    return waits
