"""Watching the limits of all sessions' sandboxes with two threads: one checks memory, one disks."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BUSY_S = 0.05
_IDLE_S = 0.5
_PAUSE_FACTOR = 4  # checks take at most a fifth of the time


@dataclass(eq=False)
class LimitCheck:
    """The check of one limit of one sandbox."""

    check: Callable[[], str]
    """Returns which limit is exceeded, in words, or the empty string."""
    report: Callable[[str], None]
    """Is called with that text, in the watcher's thread, at every check that fails."""
    busy: bool = False
    """Whether a command runs; else checks are less frequent."""
    next_time: float = 0.0
    """Time of the next check, by the monotonic clock."""


class LimitWatcher:
    """A thread that runs checks for as long as there are any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._checks: set[LimitCheck] = set()
        self._running = False

    def add(self, check: LimitCheck) -> None:
        """Begin to run a check."""
        with self._lock:
            self._checks.add(check)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def remove(self, check: LimitCheck) -> None:
        """Stop running a check; it does not report any more."""
        with self._lock:
            self._checks.discard(check)

    def _run(self) -> None:
        while True:
            started = time.monotonic()
            with self._lock:
                checks = list(self._checks)
                if not checks:
                    self._running = False
                    return
            for check in checks:
                if check.busy or started >= check.next_time:
                    check.next_time = started + _IDLE_S
                    self._run_check(check)
            time.sleep(max(_BUSY_S, _PAUSE_FACTOR * (time.monotonic() - started)))

    def _run_check(self, check: LimitCheck) -> None:
        try:
            violation = check.check()
        except Exception as error:  # noqa: BLE001 - a program that cannot be watched must not go on
            violation = f"its limits cannot be watched ({error!r})"
        if violation:
            with self._lock, suppress(RuntimeError):  # the event loop that waits for it may have ended
                if check in self._checks:
                    check.report(violation)


MEMORY = LimitWatcher("re-bench-memory")
DISK = LimitWatcher("re-bench-disk")
