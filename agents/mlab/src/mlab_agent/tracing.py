"""The trace of a run: one JSON object a line, only ever appended to, written as things happen.

It is all that a run is resumed from. Every event is handed to the system in one write before the next thing is done, so
a process that is killed loses nothing but, at worst, the event that it was writing; such a torn line is skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Trace", "TraceError", "has_begun", "read_trace"]

_HIDDEN = "[key]"
_SHORTEST_SECRET = 6  # anything shorter occurs by chance


class TraceError(Exception):
    """A trace cannot be written or read; the text says why."""


class Trace:
    """A trace that is being written. The secrets given never get into it."""

    def __init__(
        self,
        path: Path,
        secrets: Sequence[str] = (),
        elapsed: Callable[[], float] = lambda: 0.0,
        watch: Callable[[dict[str, Any]], None] = lambda _event: None,
    ) -> None:
        """Open a trace, which is made or continued, and which nobody else may be writing.

        Args:
            path: the file.
            secrets: values that are never written.
            elapsed: how long the run has worked, in seconds.
            watch: called with every event after it was written.

        Raises:
            TraceError: if another process is writing it.
        """
        self.path = path
        self._watch = watch
        self._secrets = _written(secrets)
        self.elapsed = elapsed
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise TraceError(f"{path} is being written by another process") from None
        self._end_torn_line()

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Append an event, and return it as a reader will see it."""
        event = {"kind": kind, "time": round(time.time(), 3), "elapsed": round(self.elapsed(), 3), **fields}
        line = json.dumps(event, ensure_ascii=False, allow_nan=False)
        for secret in self._secrets:
            line = line.replace(secret, _HIDDEN)
        data = memoryview(line.encode("utf-8", "backslashreplace") + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        loaded: dict[str, Any] = json.loads(line)
        self._watch(loaded)
        return loaded

    def close(self) -> None:
        """Close the file; others may write it then."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_torn_line(self) -> None:
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")


def has_begun(path: Path) -> bool:
    """Tell whether there is a trace that a run can be resumed from: one that has its start at least."""
    try:
        read_trace(path)
    except TraceError:
        return False
    return True


def read_trace(path: Path) -> list[dict[str, Any]]:
    """Return the events of a trace, without lines that a kill tore.

    Raises:
        TraceError: if there is none, or if it is something else.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    events = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "kind" in event:
            events.append(event)
    if not events or events[0]["kind"] != "start":
        raise TraceError(f"{path} is not a trace: its first event is no start of a run")
    return events


def _written(secrets: Sequence[str]) -> list[str]:
    """Return secrets as they would stand in JSON."""
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    return [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in long_enough]
