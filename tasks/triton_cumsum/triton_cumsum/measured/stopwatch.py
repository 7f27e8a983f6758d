"""Where the seconds of a scoring go, for the log."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds by name, each from the end of the one before; what ends under one name twice is added up.

    Args:
        laps: where they are added, if not to new ones.
    """

    def __init__(self, laps: dict[str, float] | None = None) -> None:
        self._last = time.monotonic()
        self.laps: dict[str, float] = {} if laps is None else laps

    def lap(self, name: str) -> None:
        """End a phase."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._last, 6)
        self._last = now
