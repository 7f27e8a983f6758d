"""Undo of every write, in order, for any path: what each write replaced, on disk.

A log has one line for each write and each undo; contents lie beside it by their hash. The line is there before the
write is made. What was kept longest goes first when all contents together are too many bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlab_agent.homes import HomeError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Journal", "Kept"]


@dataclass(frozen=True)
class Kept:
    """What a write replaced."""

    name: str
    before: bytes | None
    """The content; None if there was no such file."""


@dataclass(frozen=True)
class _Line:
    number: int
    name: str
    content: str | None
    """The hash of what was there before."""


class Journal:
    """The writes of a run. A process that opens the directory again goes on where the one before has ended."""

    def __init__(self, directory: Path, limit_bytes: int = 1 << 30) -> None:
        """Open the journal in a directory, which is made if it is missing.

        Args:
            directory: of the journal's own, not in the workspace.
            limit_bytes: of all contents kept; the newest write is kept in any case.
        """
        self._log = directory / "journal.jsonl"
        self._contents = directory / "contents"
        self._limit = limit_bytes
        self._contents.mkdir(parents=True, exist_ok=True)
        self._load()

    def keep(self, name: str, before: bytes | None) -> None:
        """Note that a file is about to be written, and what is in it now (None: it does not exist)."""
        content = None
        if before is not None:
            content = hashlib.sha256(before).hexdigest()
            self._store(content, before)
        line = _Line(self._next, name, content)
        self._append({"write": line.number, "path": name, "before": content})
        self._open[line.number] = line
        self._next += 1
        self._bound()

    def last(self, name: str) -> Kept | None:
        """Return what the newest write of a file that was not undone had replaced, or None if there is no such write.

        Raises:
            HomeError: if that content is not kept any more.
        """
        line = self._newest(name)
        if line is None or line.content is None:
            return None if line is None else Kept(name, None)
        try:
            return Kept(name, (self._contents / line.content).read_bytes())
        except FileNotFoundError:
            raise HomeError(f"{name}: what was there before is too old, and not kept any more") from None

    def drop(self, name: str) -> None:
        """Note that the newest write of a file was undone."""
        line = self._newest(name)
        if line is not None:
            self._append({"undone": line.number})
            del self._open[line.number]

    def mark(self) -> int:
        """Return the position now, for :meth:`rewind`."""
        return self._end

    def rewind(self, mark: int) -> None:
        """Forget everything after a position, because the workspace is what it was then."""
        if mark < self._end:
            os.truncate(self._log, mark)
            self._load()

    def _newest(self, name: str) -> _Line | None:
        return next((line for line in reversed(self._open.values()) if line.name == name), None)

    def _load(self) -> None:
        self._open: dict[int, _Line] = {}
        self._next = 1
        self._log.touch()
        data = self._log.read_bytes()
        self._end = data.rfind(b"\n") + 1
        if self._end < len(data):  # a line that a killed process did not end; its write was not made
            os.truncate(self._log, self._end)
        for text in data[: self._end].splitlines():
            said = json.loads(text)
            if "undone" in said:
                self._open.pop(said["undone"], None)
            else:
                self._open[said["write"]] = _Line(said["write"], said["path"], said["before"])
                self._next = said["write"] + 1
        self._sizes = {path.name: path.stat().st_size for path in self._contents.iterdir()}

    def _append(self, said: dict[str, object]) -> None:
        line = json.dumps(said).encode() + b"\n"
        with self._log.open("ab") as log:
            log.write(line)
        self._end += len(line)

    def _store(self, content: str, data: bytes) -> None:
        if content not in self._sizes:
            path = self._contents / content
            part = path.with_suffix(".part")
            part.write_bytes(data)
            part.replace(path)
            self._sizes[content] = len(data)

    def _bound(self) -> None:
        """Remove the contents that were kept longest, until they fit."""
        if (total := sum(self._sizes.values())) <= self._limit:
            return
        wanted = {line.content: number for number, line in self._open.items()}
        newest = max(self._open)
        for content in sorted(self._sizes, key=lambda each: wanted.get(each, 0)):
            if total <= self._limit or wanted.get(content) == newest:
                return
            total -= self._sizes.pop(content)
            with contextlib.suppress(FileNotFoundError):
                (self._contents / content).unlink()
