"""Limit a program's time, not counting the time during which it waits for a core of a busy machine."""

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
"""A limit of ``n`` seconds is reached after ``MAX_STRETCH * n`` seconds at the latest, however busy the machine is."""
starved: list[str] = []
"""Texts about the limits of this process that ended because of :data:`MAX_STRETCH`: the machine was too busy."""


class CoreTime(NamedTuple):
    """How long a thread has run on a core and has waited for a core, in seconds."""

    ran: float
    waited: float


class TimeLimit:
    """A limit of ``seconds`` of wall-clock time from now.

    The limit is extended by the time that the limited processes have waited for a core, up to :data:`MAX_STRETCH` times
    ``seconds`` in total. The extension is the longest wait of any thread, but at most the elapsed time minus the time
    that all cores together would need to run the threads, so that threads gain no time by competing with each other.

    Args:
        seconds: the limit.
        waits: a function that returns how long each thread has run and waited so far, such as :func:`core_waits`.
        started: whether the threads exist already; their waits before the first check are then ignored.
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
        """Return the seconds left (at least 0), assuming that no thread waits for a core from now on."""
        times, elapsed = self._waits(), self.elapsed_s
        if self._before is None:
            self._before = times
        for thread, (ran, waited) in times.items():
            before = self._before.get(thread, CoreTime(0.0, 0.0))
            self._ran[thread] = ran - before.ran
            self._longest_wait = max(self._longest_wait, waited - before.waited)
        own = sum(self._ran.values()) / len(os.sched_getaffinity(0))
        self._waited = max(self._waited, min(self._longest_wait, elapsed - own))
        if MAX_STRETCH * self.seconds <= elapsed < self.seconds + self._waited:
            starved.append(f"a limit of {self.seconds:g} s had to end after {elapsed:.0f} s")
        return max(0.0, min(self.seconds + self._waited, MAX_STRETCH * self.seconds) - elapsed)

    @property
    def reached(self) -> bool:
        """Whether the limit is reached."""
        return self.elapsed_s >= self.seconds and self.check() <= 0

    def describe(self, cpu_s: float | None = None) -> str:
        """Return the limit as text; if the machine was busy, include the wall-clock time and, if known, CPU time."""
        elapsed = self.elapsed_s
        if self._waited < 0.1 * self.seconds + 1:
            return f"{self.seconds:g} s"
        used = "" if cpu_s is None else f" with {cpu_s:.0f} s of CPU time"
        return f"{self.seconds:g} s (it took {elapsed:.0f} s of wall-clock time{used}; the machine was busy)"


def core_waits(root: int | None = None) -> dict[int, CoreTime]:
    """Return how long each thread of a process tree has run and has waited for a core, by thread ID.

    ``root`` is the PID of the process at the top; None for this process. The times are from
    ``/proc/PID/task/TID/schedstat`` (Documentation/scheduler/sched-stats.rst); if the kernel lacks these files, the
    result is empty.
    """
    waits = {}
    for pid in process_tree(root or os.getpid()):
        with suppress(OSError, ValueError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError, ValueError, IndexError):
                    ran, waited, _slices = map(int, (thread / "schedstat").read_bytes().split())
                    waits[int(thread.name)] = CoreTime(ran / 1e9, waited / 1e9)
    return waits
