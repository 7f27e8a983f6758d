"""Undo of every write, in order, for any path: the content that each write replaced, on disk.

A log has one line for each write and each undo; contents lie beside it by their hash. The line is there before the
write is made. The oldest contents are removed first when all together are too many bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlab_agent import jsonl
from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ReplacedContent:
    """The content that a write replaced."""

    name: str
    before: bytes | None
    """The content; None if there was no such file."""


@dataclass(frozen=True)
class _Write:
    number: int
    name: str
    digest: str | None
    """The hash of the content before."""


class Journal:
    """The writes of a run. A process that opens the directory again continues where the last one ended."""

    def __init__(self, directory: Path, limit_bytes: int = 1 << 30) -> None:
        """Open the journal in a directory, which is made if it is missing.

        Args:
            directory: of the journal alone, not in the workspace.
            limit_bytes: of all contents; that of the newest write is kept in any case.
        """
        self._log = directory / "journal.jsonl"
        self._contents = directory / "contents"
        self._limit = limit_bytes
        self._contents.mkdir(parents=True, exist_ok=True)
        self._load()

    def record(self, name: str, before: bytes | None) -> None:
        """Note that a file is about to be written, and its content now (None: it does not exist)."""
        digest = None
        if before is not None:
            digest = hashlib.sha256(before).hexdigest()
            self._store(digest, before)
        write = _Write(self._next, name, digest)
        self._end = jsonl.append(self._log, {"write": write.number, "path": name, "before": digest})
        self._writes[write.number] = write
        self._next += 1
        self._remove_oldest()

    def last(self, name: str) -> ReplacedContent | None:
        """Return what the newest write of a file that was not undone had replaced, or None if there is no such write.

        Raises:
            WorkspaceError: if that content is not stored any more.
        """
        write = self._newest(name)
        if write is None or write.digest is None:
            return None if write is None else ReplacedContent(name, None)
        try:
            return ReplacedContent(name, (self._contents / write.digest).read_bytes())
        except FileNotFoundError:
            raise WorkspaceError(f"{name}: what was there before is too old, and not kept any more") from None

    def mark_undone(self, name: str) -> None:
        """Note that the newest write of a file was undone."""
        write = self._newest(name)
        if write is not None:
            self._end = jsonl.append(self._log, {"undone": write.number})
            del self._writes[write.number]

    def position(self) -> int:
        """Return the position now, for :meth:`rewind`."""
        return self._end

    def rewind(self, position: int) -> None:
        """Forget everything after a position, because the workspace is what it was then."""
        if position < self._end:
            os.truncate(self._log, position)
            self._load()

    def _newest(self, name: str) -> _Write | None:
        return next((write for write in reversed(self._writes.values()) if write.name == name), None)

    def _load(self) -> None:
        self._writes: dict[int, _Write] = {}
        self._next = 1
        self._log.touch()
        for line in jsonl.read(self._log):
            if "undone" in line:
                self._writes.pop(line["undone"], None)
            else:
                self._writes[line["write"]] = _Write(line["write"], line["path"], line["before"])
                self._next = line["write"] + 1
        self._end = self._log.stat().st_size
        self._sizes = {path.name: path.stat().st_size for path in self._contents.iterdir()}

    def _store(self, digest: str, data: bytes) -> None:
        if digest not in self._sizes:
            path = self._contents / digest
            part = path.with_suffix(".part")
            part.write_bytes(data)
            part.replace(path)
            self._sizes[digest] = len(data)

    def _remove_oldest(self) -> None:
        """Remove the contents of the oldest writes, until the others are within the limit."""
        if (total := sum(self._sizes.values())) <= self._limit:
            return
        last_use = {write.digest: number for number, write in self._writes.items()}
        newest = max(self._writes)
        for digest in sorted(self._sizes, key=lambda digest: last_use.get(digest, 0)):
            if total <= self._limit or last_use.get(digest) == newest:
                return
            total -= self._sizes.pop(digest)
            with contextlib.suppress(FileNotFoundError):
                (self._contents / digest).unlink()
