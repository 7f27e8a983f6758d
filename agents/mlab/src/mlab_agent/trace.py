"""The trace of a run: one JSON object a line, only ever appended to, written as things happen.

A run is resumed from its trace alone. Every event is handed to the system in one write before the next thing is done,
so a process that is killed loses at most the event that it was writing; such an unfinished line is skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any, Self

from mlab_agent import jsonl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TRACE_FILE = "trace.jsonl"
"""Its name in the directory of a run."""
_REDACTED = "[key]"
_MIN_SECRET_CHARS = 6  # anything shorter occurs by chance


class TraceError(Exception):
    """A trace cannot be written or read; the message says why."""


class Trace:
    """A trace that is being written. The given secrets never get into it."""

    def __init__(
        self,
        path: Path,
        secrets: Sequence[str] = (),
        elapsed: Callable[[], float] = lambda: 0.0,
        watch: Callable[[dict[str, Any]], None] = lambda _event: None,
    ) -> None:
        """Open a trace, new or existing, for this process alone.

        Args:
            path: the file.
            secrets: values that are never written.
            elapsed: how long the run has worked, in seconds.
            watch: called with every event after it was written.

        Raises:
            TraceError: if another process is writing it.
        """
        self.path = path
        self.elapsed = elapsed
        self._watch = watch
        # as they would be written in JSON
        self._secrets = [jsonl.dumps(secret)[1:-1] for secret in secrets if len(secret) >= _MIN_SECRET_CHARS]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise TraceError(f"{path} is being written by another process") from None

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Append an event, and return it as a reader will see it."""
        event = {"kind": kind, "time": round(time.time(), 3), "elapsed": round(self.elapsed(), 3), **fields}
        line = jsonl.dumps(event)
        for secret in self._secrets:
            line = line.replace(secret, _REDACTED)
        jsonl.append_lines(self._file, [line])
        written: dict[str, Any] = json.loads(line)
        self._watch(written)
        return written

    def close(self) -> None:
        """Close the file; others may write it then."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def has_begun(path: Path) -> bool:
    """Tell whether there is a trace that a run can be resumed from: one that has its start at least."""
    try:
        read_trace(path)
    except TraceError:
        return False
    return True


def read_trace(path: Path) -> list[dict[str, Any]]:
    """Return the events of a trace, without unfinished lines.

    Raises:
        TraceError: if there is none, or if the file is something else.
    """
    try:
        values = jsonl.read(path)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    events = [value for value in values if isinstance(value, dict) and "kind" in value]
    if not events or events[0]["kind"] != "start":
        raise TraceError(f"{path} is not a trace: its first event is no start of a run")
    return events
