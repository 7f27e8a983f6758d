"""The clock of a run, which stops while the run waits for a server.

Each wait is a line of JSON in ``waits.jsonl`` in the run's directory, and in the file that the environment variable
``RE_BENCH_WAITS`` names: ``{"began": s, "ended": s, "reason": "..."}``, in seconds since 1970.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.trace import append_line, json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Clock:
    """The working time of a run in seconds, including that before it was resumed."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.monotonic() - before
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        """Return the seconds."""
        return (time.monotonic() if self._stopped_at is None else self._stopped_at) - self._start

    def leave_out(self, seconds: float) -> None:
        """Subtract seconds that were counted."""
        self._start += min(seconds, self())

    def stop(self) -> None:
        """Stop the clock."""
        self._stopped_at = time.monotonic()

    def start(self) -> None:
        """Start the clock again."""
        if self._stopped_at is not None:
            self._start += time.monotonic() - self._stopped_at
            self._stopped_at = None


class Waits:
    """The waits of a run, one at a time. ``report`` gets the fields of each; ``redacted`` removes secrets."""

    def __init__(
        self,
        clock: Clock | None = None,
        files: Sequence[Path] = (),
        report: Callable[[dict[str, object]], None] = lambda _wait: None,
        redacted: Callable[[str], str] = str,
    ) -> None:
        self.clock = clock or Clock()
        self._files = files
        self._report, self._redacted = report, redacted
        self._reason: str | None = None
        self._began = 0.0

    def begin(self, reason: str, before: float = 0.0) -> None:
        """Begin a wait, unless there is one, with the last seconds ``before`` now."""
        if self._reason is None:
            self._reason, self._began = reason, time.time() - before
            self.clock.leave_out(before)
            self.clock.stop()

    def end(self) -> None:
        """End the wait, if there is one."""
        reason, self._reason = self._reason, None
        if reason is None:
            return
        self.clock.start()
        ended = max(self._began, time.time())
        wait = {"began": round(self._began, 3), "ended": round(ended, 3), "reason": self._redacted(reason)}
        for path in self._files:
            with contextlib.suppress(OSError), path.open("a+b") as file:  # a full disk must not end the run
                append_line(file.fileno(), json_line(wait))
        self._report(dict(wait))


def files_for_waits(directory: Path) -> list[Path]:
    """Return the files for the waits of the run in a directory."""
    name = os.environ.get("RE_BENCH_WAITS")
    return [directory / "waits.jsonl", *([Path(name).absolute()] if name else [])]
