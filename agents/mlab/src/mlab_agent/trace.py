"""The trace of a run: one JSON object a line, only ever appended to, written as things happen.

A run is resumed from its trace alone. Every event is handed to the system in one write before the next thing is done,
so a process that is killed loses at most the event that it was writing; such an unfinished line is skipped by readers,
and ended by the next append. There is no fsync: what is written survives the process, not a crash of the machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
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
        append_lines(self._file, [line])
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


def last_settings(path: Path) -> dict[str, Any]:
    """Return the settings that a run was last started with.

    Raises:
        TraceError: if there is no trace, or none with settings.
    """
    settings = [event["settings"] for event in read_trace(path) if event.get("settings")]
    if not settings:
        raise TraceError(f"{path} does not say how its run is made")
    last: dict[str, Any] = settings[-1]
    return last


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
        values = read_lines(path)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}") from None
    events = [value for value in values if isinstance(value, dict) and "kind" in value]
    if not events or events[0]["kind"] != "start":
        raise TraceError(f"{path} is not a trace: its first event is no start of a run")
    return events


def json_line(value: object) -> str:
    """Return a value as one line of JSON, without its line end."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def append_values(path: Path, *values: object) -> None:
    """Append values to a file, one a line; it is made if it is missing."""
    with path.open("a+b") as file:
        append_lines(file.fileno(), map(json_line, values))


def append_lines(file: int, lines: Iterable[str]) -> None:
    """Append lines to a descriptor that was opened for reading and appending."""
    size = os.fstat(file).st_size
    unfinished = size and os.pread(file, 1, size - 1) != b"\n"
    text = ("\n" if unfinished else "") + "".join(f"{line}\n" for line in lines)
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    while data:
        data = data[os.write(file, data) :]


def read_lines(path: Path) -> list[Any]:
    """Return the values of a file.

    Raises:
        OSError: if it cannot be read.
    """
    values = []
    for line in path.read_bytes().split(b"\n"):
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    return values
