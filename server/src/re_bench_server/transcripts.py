"""Transcripts: the calls of a session and their results, a line of JSON each.

docs/transcripts.md describes the format. A thread writes the lines, so that no call waits for a disk.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import locked_log, read_lines
from re_bench.data.redaction import redacted
from re_bench_server.logs import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from re_bench.data.jsonl import LockedLog

VERSION = 1
"""The version of the format, which stands in the first line."""
FILE = "transcript.jsonl"
"""The name of the file in a session's directory."""
MAX_TEXT = 256 << 10
"""The longest text of a field, in characters."""
BRIEF_TEXT = 1000
"""The longest text of a field when most of the space is used."""

_STAGES = ((MAX_TEXT, 0.75, "brief"), (BRIEF_TEXT, 1.0, "nothing"))
"""The longest text, the share of the space until which it holds, and what is kept from there."""
_DELAY_S = 0.05
_LIMIT_MARK = b'{"kind":"limit"'


@dataclass
class Transcript:
    """The transcript of one session; :class:`TranscriptWriter` appends to it, in one thread."""

    path: Path
    limit: int
    """The most bytes of the file, but for a last line that says that it is reached."""
    failed: bool = False
    """Whether a line could not be written."""
    _sequence: int = -1
    _size: int = -1
    _stage: int = 0

    def append(self, entry: Mapping[str, Any], secrets: Iterable[str]) -> None:
        """Append an entry without the secrets, or as much of it as there is space for.

        Raises:
            OSError: if the system refuses the write.
        """
        clean = _redacted(entry, tuple(secrets))
        with locked_log(self.path) as file:
            if self._size < 0:
                self._continue(file)
            while self._stage < len(_STAGES):
                longest_text, share, from_here = _STAGES[self._stage]
                if self._write(file, _shortened(clean, longest_text), share * self.limit):
                    return
                self._write(file, {"kind": "limit", "time": utc(), "bytes": self.limit, "from_here": from_here})
                self._stage += 1

    def _write(self, file: LockedLog, entry: Mapping[str, Any], space: float = math.inf) -> bool:
        """Write an entry if there is space for it, and tell whether there was."""
        fields = {"kind": entry["kind"], "seq": self._sequence + 1} | dict(entry)
        line = json.dumps(fields, separators=(",", ":"), default=str).encode("ascii")
        if self._size + len(line) >= space:
            return False
        file.append(line, sync=False)
        self._sequence, self._size = self._sequence + 1, self._size + len(line) + 1
        return True

    def _continue(self, file: LockedLog) -> None:
        """Go on where a server that has ended stopped writing."""
        lines = file.lines()
        self._size = sum(len(line) + 1 for line in lines)
        self._stage = sum(line.startswith(_LIMIT_MARK) for line in lines)
        self._sequence = max((entry["seq"] for entry in _entries(lines[-2:])), default=len(lines) - 1)


class TranscriptWriter:
    """Writes the transcripts of all sessions of a server, a moment later, when responses are on their way."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="transcripts")
        self._waiting: list[Callable[[], None]] = []

    def append(self, transcript: Transcript, entry: Mapping[str, Any], secrets: Iterable[str]) -> None:
        """Append an entry soon; a transcript that cannot be written is logged once and does not stop its session.

        It is called by one event loop.
        """
        if not self._waiting:
            asyncio.get_running_loop().call_later(_DELAY_S, self._write)
        self._waiting.append(partial(_append, transcript, entry, secrets))

    async def close(self) -> None:
        """Write what is waiting."""
        self._write()
        await asyncio.to_thread(self._thread.shutdown)

    def _write(self) -> None:
        if self._waiting:
            self._thread.submit(_call_all, self._waiting)
            self._waiting = []


@dataclass(frozen=True)
class TranscriptContents:
    """What a transcript holds."""

    entries: list[dict[str, Any]]
    """Its whole entries, in order."""
    torn: int
    """Lines that a kill has left half written."""


def read_transcript(path: Path) -> TranscriptContents:
    """Return what a transcript holds; one that does not exist is empty.

    Raises:
        LogError: if the path is not a plain file.
    """
    lines = read_lines(path)
    entries = _entries(lines)
    return TranscriptContents(entries, len(lines) - len(entries))


def utc() -> str:
    """Return the time now as transcripts have it: ISO 8601, UTC, milliseconds."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


def _call_all(functions: Iterable[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _append(transcript: Transcript, entry: Mapping[str, Any], secrets: Iterable[str]) -> None:
    try:
        transcript.append(entry, secrets)
    except OSError as error:
        removed = error.errno == errno.ENOENT  # with its session
        if not removed and not transcript.failed:
            transcript.failed = True
            log.error("transcript_not_written", path=str(transcript.path), reason=error.strerror)
    except Exception as error:  # noqa: BLE001 - nobody waits for this thread's result
        log.error("transcript_not_written", path=str(transcript.path), reason=repr(error)[:BRIEF_TEXT])


def _entries(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("seq"), int):
            entries.append(entry)
    return entries


def _shortened(entry: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Return an entry with its long texts cut, and in ``cut`` how many characters each of these had."""
    cut: dict[str, int] = {}

    def shorten(value: object, name: str) -> object:
        if isinstance(value, str) and len(value) > longest:
            cut[name] = len(value)
            return value[:longest]
        if isinstance(value, dict):
            return {key: shorten(inner, f"{name}.{key}" if name else key) for key, inner in value.items()}
        return value

    fields = {key: shorten(value, key) for key, value in entry.items()}
    return fields | ({"cut": cut} if cut else {})


def _redacted(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return redacted(value, secrets, similar=True)
    if isinstance(value, dict):
        return {name: _redacted(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(inner, secrets) for inner in value]
    return value
