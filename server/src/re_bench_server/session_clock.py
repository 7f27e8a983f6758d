"""A session's clock: how long it has run, and how much of that was working time.

Time in which no server ran is in neither. Working time leaves out what the server made the session wait for others: a
place in the scoring queue, and the GPU's turn. The session's hours are hours of working time.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.runs.elapsed import Elapsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench_server.session_record import SessionRecord


class SessionClock:
    """The clock of one session, which goes on from what its record says. It is used by one event loop."""

    def __init__(self, record: SessionRecord) -> None:
        """Begin to count; ``record`` gets the times by :meth:`checkpoint`."""
        self._record = record
        self._waited_s = record.waited_s
        self._waiting_since: float | None = None
        self._waiting_calls = 0
        self._begin()

    def _begin(self) -> None:
        self.started = time.monotonic() - self._record.used_s - self._waited_s
        """When the session would have begun by the monotonic clock, had its server never been down."""
        self._period = (time.time(), time.monotonic())

    def restart(self) -> None:
        """Begin anew: the workspace is laid out now, which took none of the session's time."""
        self._record.periods = []
        self._begin()

    def elapsed(self) -> Elapsed:
        """Return how long the session has run."""
        now = time.monotonic()
        waited_s = self._waited_s + (now - self._waiting_since if self._waiting_since is not None else 0.0)
        wall_s = now - self.started
        return Elapsed(wall_s, max(0.0, wall_s - waited_s))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave the block's time out of the working time; what several calls wait at once counts once."""
        self._waiting_calls += 1
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
        try:
            yield
        finally:
            self._waiting_calls -= 1
            if self._waiting_calls == 0:
                self._waited_s += time.monotonic() - self._waiting_since
                self._waiting_since = None

    def add_wait(self, seconds: float) -> None:
        """Leave seconds out that were waited somewhere else, such as in a scorer's process."""
        self._waited_s += seconds

    def checkpoint(self) -> None:
        """Write the times into the record, to be saved."""
        elapsed = self.elapsed()
        self._record.used_s, self._record.waited_s = elapsed.working_s, elapsed.waited_s
        began, since = self._period
        period = [round(began, 3), round(began + time.monotonic() - since, 3)]
        earlier = [other for other in self._record.periods if other[0] != period[0]]
        self._record.periods = [*earlier, period]
