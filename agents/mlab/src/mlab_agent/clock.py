"""The clock of a run."""

from __future__ import annotations

import time


class Clock:
    """The seconds of working time of a run, those before it was resumed included: waits are left out."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.monotonic() - before
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        """Return the seconds."""
        now = time.monotonic() if self._stopped_at is None else self._stopped_at
        return now - self._start

    def leave_out(self, seconds: float) -> None:
        """Leave out some of the seconds that were counted."""
        self._start += min(seconds, self())

    def stop(self) -> None:
        """Stand still, until :meth:`go_on`."""
        self._stopped_at = time.monotonic()

    def go_on(self) -> None:
        """Count again."""
        if self._stopped_at is not None:
            self._start += time.monotonic() - self._stopped_at
            self._stopped_at = None
