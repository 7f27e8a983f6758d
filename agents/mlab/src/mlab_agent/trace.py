"""The trace of a run: one JSON object a line, only ever appended to, written as things happen.

A run is resumed from its trace alone. Every event is handed to the system in one write before the next thing is done,
so a process that is killed loses at most the event that it was writing; such an unfinished line is skipped by readers,
and ended by the next append. There is no fsync: what is written survives the process, not a crash of the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TRACE_FILE = "trace.jsonl"
"""Its name in the directory of a run."""
MIN_SECRET_CHARS = 6
"""Anything shorter occurs by chance."""
_REDACTED = "[key]"


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
        self._secrets: list[str] = []
        for secret in secrets:
            self.redact(secret)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise TraceError(f"{path} is being written by another process") from None

    def redact(self, secret: str) -> None:
        """Keep a further value out of the trace from now on."""
        if len(secret) >= MIN_SECRET_CHARS:
            self._secrets.append(json_line(secret)[1:-1])  # as it would be written in JSON

    def redacted(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Append an event, and return it as a reader will see it."""
        event = {"kind": kind, "time": round(time.time(), 3), "elapsed": round(self.elapsed(), 3), **fields}
        line = self.redacted(json_line(event))
        append_line(self._file, line)
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
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    events = []
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict) and "kind" in value:
                events.append(value)
    if not events or events[0]["kind"] != "start":
        raise TraceError(f"{path} is not a trace: its first event is no start of a run")
    return events


def json_line(value: object) -> str:
    """Return a value as one line of JSON, without its line end."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def append_line(file: int, line: str) -> None:
    """Append a line to a descriptor that was opened for reading and appending, after the end of an unfinished one."""
    size = os.fstat(file).st_size
    unfinished = size and os.pread(file, 1, size - 1) != b"\n"
    data = memoryview(f"{chr(10) if unfinished else ''}{line}\n".encode("utf-8", "backslashreplace"))
    while data:
        data = data[os.write(file, data) :]
