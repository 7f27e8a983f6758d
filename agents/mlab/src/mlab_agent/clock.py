"""The clock of a run, and its waits for others: a models' server that is overloaded or away, an ORS server.

Such time is no working time. Each wait is left out of the run's clock, and is a line of JSON in ``waits.jsonl`` in the
run's directory, and in the file that the environment variable ``RE_BENCH_WAITS`` names:
``{"began": s, "ended": s, "reason": "..."}`` in seconds since 1970.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mlab_agent.settings import SettingsError
from mlab_agent.trace import append_line, json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_VARIABLE = "RE_BENCH_WAITS"


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


class Waits:
    """The waits of a run, one at a time."""

    def __init__(
        self,
        clock: Clock | None = None,
        files: Sequence[Path] = (),
        report: Callable[[dict[str, object]], None] = lambda _wait: None,
        redacted: Callable[[str], str] = str,
    ) -> None:
        """Begin without any.

        Args:
            clock: of the run, which leaves them out.
            files: get a line for each wait.
            report: called with the fields of each wait, when it has ended.
            redacted: takes secrets out of the reasons, which may quote the server that failed.
        """
        self._clock = clock or Clock()
        self._files = files
        self._report, self._redacted = report, redacted
        self._reason: str | None = None
        self._began = 0.0

    def leave_out(self, seconds: float) -> None:
        """Leave out seconds that are recorded elsewhere, such as by the server."""
        self._clock.leave_out(seconds)

    def add(self, seconds: float, reason: str) -> None:
        """Leave out seconds that have just been waited, and write them down."""
        self._clock.leave_out(seconds)
        self._write(time.time() - seconds, reason)

    def begin(self, reason: str) -> None:
        """Begin to wait, unless it waits already."""
        if self._reason is None:
            self._reason, self._began = reason, time.time()
            self._clock.stop()

    def end(self) -> None:
        """End the wait, if there is one."""
        reason, self._reason = self._reason, None
        if reason is not None:
            self._clock.go_on()
            self._write(self._began, reason)

    @contextlib.contextmanager
    def waiting(self, reason: str) -> Iterator[None]:
        """Wait for as long as the block runs, however it ends."""
        self.begin(reason)
        try:
            yield
        finally:
            self.end()

    def _write(self, began: float, reason: str) -> None:
        ended = max(began, time.time())
        wait = {"began": round(began, 3), "ended": round(ended, 3), "reason": self._redacted(reason)}
        for path in self._files:
            with contextlib.suppress(OSError), path.open("a+b") as file:  # the run is worth more than the line
                append_line(file.fileno(), json_line(wait))
        self._report(dict(wait))


def files_for_waits(directory: Path) -> list[Path]:
    """Return the files for the waits of the run in a directory.

    Raises:
        SettingsError: if the one that the environment names cannot be written.
    """
    files = [directory / "waits.jsonl"]
    if name := os.environ.get(_VARIABLE):
        try:
            Path(name).open("ab").close()
        except OSError as error:
            raise SettingsError(f"{_VARIABLE}={name}: it cannot be written: {error.strerror}") from None
        files.append(Path(name).absolute())
    return list(dict.fromkeys(files))
