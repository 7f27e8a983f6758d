"""The limits of all sessions' sandboxes, watched by two threads: one looks at memory, one at disks."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DISK", "MEMORY", "Watched", "Watcher"]

_BUSY_S = 0.05
_IDLE_S = 0.5
_PAUSES = 4  # looking takes at most a fifth of the time


@dataclass(eq=False)
class Watched:
    """One sandbox, as one limit sees it."""

    look: Callable[[], str]
    """Returns which limit is exceeded, in words, or the empty string."""
    tell: Callable[[str], None]
    """Is told so, in the watcher's thread, at every look."""
    busy: bool = False
    """Whether a command runs; else it is looked at less often."""
    next: float = 0.0
    """When it is to be looked at, by the monotonic clock."""


class Watcher:
    """Looks at sandboxes for as long as there are any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._all: set[Watched] = set()
        self._running = False

    def add(self, watched: Watched) -> None:
        """Begin to look at a sandbox."""
        with self._lock:
            self._all.add(watched)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def remove(self, watched: Watched) -> None:
        """Look at a sandbox no longer, after a look that is under way."""
        with self._lock:
            self._all.discard(watched)

    def _run(self) -> None:
        while True:
            started = time.monotonic()
            with self._lock:
                now = list(self._all)
                if not now:
                    self._running = False
                    return
            for watched in now:
                if watched.busy or started >= watched.next:
                    watched.next = started + _IDLE_S
                    self._look(watched)
            time.sleep(max(_BUSY_S, _PAUSES * (time.monotonic() - started)))

    def _look(self, watched: Watched) -> None:
        try:
            why = watched.look()
        except Exception as error:  # noqa: BLE001 - a program that cannot be watched must not go on
            why = f"its limits cannot be watched ({error!r})"
        if why:
            with self._lock, suppress(RuntimeError):  # the event loop that wanted to know may have ended
                if watched in self._all:
                    watched.tell(why)


MEMORY = Watcher("re-bench-memory")
DISK = Watcher("re-bench-disk")
