"""What both homes have in common: names, read-only files, whole reads and writes, snapshots."""

from __future__ import annotations

import abc
import fnmatch
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mlab_agent.homes import PRIVATE, Entry, HomeError
from mlab_agent.homes.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["MIB", "SKIPPED", "Kind", "Stamp", "Workspace"]

MIB = 1 << 20
SKIPPED = (PRIVATE, "__pycache__", ".cache", ".ipynb_checkpoints")
"""Directories that snapshots leave out wherever they are."""

Kind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True)
class Stamp:
    """What tells whether a file has changed, without reading it."""

    kind: Kind
    size: int
    mode: int
    changed: str
    """Its inode and times, which no program without privileges can set back."""
    target: str = ""
    """Where a link leads."""


class Workspace(abc.ABC):
    """A home without the place where its files are. Methods with an underscore take names, the others paths."""

    root: str
    """The workspace's absolute path, at its place."""

    def __init__(self, read_only: Sequence[str], read_limit: int, snapshot_limit: int, left_out: Sequence[str]) -> None:
        """Say what is common.

        Args:
            read_only: names or patterns of files and directories that must stay as they are; ``*`` matches slashes too.
            read_limit: bytes of the longest file that is read.
            snapshot_limit: bytes of the longest file that snapshots hold.
            left_out: names or patterns of what snapshots leave out beside.
        """
        self.read_only = tuple(_tidy(each) for each in read_only)
        self._read_limit = read_limit
        self._snapshot_limit = snapshot_limit
        self._left_out = tuple(_tidy(each) for each in left_out)
        self._snapshots: dict[Path, Snapshots] = {}
        self.finished = False

    @abc.abstractmethod
    def _resolve(self, path: str) -> str:
        """Return the name of a path with all links followed, "." for the workspace itself."""

    @abc.abstractmethod
    def _plain(self, path: str) -> str:
        """Return the name of a path with no link followed."""

    def _below(self, absolute: str, path: str) -> str:
        """Return the name of an absolute path; raise if it leads out of the workspace."""
        if absolute == self.root:
            return "."
        above = self.root.rstrip("/") + "/"
        if not absolute.startswith(above):
            raise HomeError(f"{path} leads out of the workspace, which is {self.root}")
        return absolute[len(above) :]

    @abc.abstractmethod
    def _stat(self, name: str) -> Stamp | None:
        """Return what there is, or None."""

    @abc.abstractmethod
    def _entries(self, name: str) -> list[Entry]: ...

    @abc.abstractmethod
    def fetch(self, name: str) -> bytes:
        """Return a whole file."""

    @abc.abstractmethod
    def put(self, name: str, data: bytes, mode: int | None = None) -> None:
        """Write a whole file or nothing; directories above are made, and the mode is kept if None is given."""

    @abc.abstractmethod
    def link(self, name: str, target: str) -> None:
        """Make a symbolic link in place of what is there."""

    @abc.abstractmethod
    def make_directory(self, name: str) -> None:
        """Make a directory and those above."""

    @abc.abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file or link, or an empty directory."""

    @abc.abstractmethod
    def stamps(self, names: Iterable[str]) -> dict[str, Stamp]:
        """Return what there is of some names, no links followed."""

    @abc.abstractmethod
    def scan(self, left_out: Sequence[str]) -> dict[str, Stamp]:
        """Return all files, links and directories below the workspace but the left-out ones and what is in them."""

    @abc.abstractmethod
    def _copy(self, source: str, destination: str) -> None: ...

    def name(self, path: str) -> str:
        """See :class:`mlab_agent.homes.Home`."""
        if not path.strip():
            raise HomeError("the path is empty")
        if "\0" in path:
            raise HomeError("a path cannot have a NUL character")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise HomeError("the path is no valid text") from None
        return self._resolve(path)

    def is_read_only(self, name: str) -> bool:
        """Tell whether a name, or a directory above it, is read-only."""
        return matches(name, (PRIVATE, *self.read_only))

    def check_writable(self, path: str) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(path)
        for each in dict.fromkeys((name, self._plain(path))):  # a link may have the name of a read-only file
            if self.is_read_only(each):
                raise HomeError(f"{path} is read-only: {each} must stay as it is")
        stamp = self._stat(name)
        if stamp is not None and stamp.kind != "file":
            raise HomeError(f"{path} is a {stamp.kind if stamp.kind != 'other' else 'special file'}, not a file")

    def exists(self, path: str) -> bool:
        """See :class:`mlab_agent.homes.Home`."""
        return self._stat(self.name(path)) is not None

    def list(self, path: str) -> list[Entry]:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(path)
        stamp = self._stat(name)
        if stamp is None or stamp.kind != "directory":
            raise HomeError(f"{path} {'does not exist' if stamp is None else 'is no directory'}")
        return sorted(self._entries(name), key=lambda entry: entry.name)

    def read(self, path: str) -> str:
        """See :class:`mlab_agent.homes.Home`."""
        return self.read_bytes(path).decode(errors="replace")

    def read_bytes(self, path: str) -> bytes:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(path)
        self._check_file(name, path)
        return self.fetch(name)

    def write(self, path: str, text: str) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        try:
            self.write_bytes(path, text.encode())
        except UnicodeEncodeError:
            raise HomeError("the text cannot be written as UTF-8") from None

    def write_bytes(self, path: str, data: bytes) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        self.check_writable(path)
        self.put(self.name(path), data)

    def copy(self, source: str, destination: str) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        name = self.name(source)
        self._check_file(name, source, limited=False)
        self.check_writable(destination)
        self._copy(name, self.name(destination))

    def remove(self, path: str) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        self.check_writable(path)
        name = self.name(path)
        self._check_file(name, path, limited=False)
        self.delete(name)

    def snapshot(self, store: Path) -> str:
        """See :class:`mlab_agent.homes.Home`."""
        return self._kept_in(store).save(self.scan(self._outside()), self.fetch)

    def restore(self, store: Path, snapshot: str) -> None:
        """See :class:`mlab_agent.homes.Home`."""
        self._kept_in(store).restore(snapshot, self.scan(self._outside()), self)

    def _outside(self) -> tuple[str, ...]:
        return (*SKIPPED, *self.read_only, *self._left_out)

    def _kept_in(self, store: Path) -> Snapshots:
        if store not in self._snapshots:
            self._snapshots[store] = Snapshots(store, self._snapshot_limit)
        return self._snapshots[store]

    def _check_file(self, name: str, path: str, *, limited: bool = True) -> None:
        stamp = self._stat(name)
        if stamp is None:
            msg = f"{path} does not exist"
        elif stamp.kind != "file":
            msg = f"{path} is a {stamp.kind if stamp.kind != 'other' else 'special file'}, not a file"
        elif limited and stamp.size > self._read_limit:
            size, most = stamp.size / MIB, self._read_limit / MIB
            msg = f"{path} has {size:.1f} MiB; files of at most {most:g} MiB are read and kept: use a script for it"
        else:
            return
        raise HomeError(msg)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a name or a directory above it is one of the patterns; one without slash is for any directory's."""
    parts = name.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(
        fnmatch.fnmatchcase(each, pattern) or ("/" not in pattern and fnmatch.fnmatchcase(part, pattern))
        for pattern in patterns
        for each, part in zip(above, parts, strict=True)
    )


def children(stamps: Mapping[str, Stamp]) -> dict[str, list[str]]:
    """Return the names in each directory, "" for the workspace."""
    found: dict[str, list[str]] = {}
    for name in stamps:
        found.setdefault(posixpath.dirname(name), []).append(name)
    return found


def _tidy(pattern: str) -> str:
    return posixpath.normpath(pattern).lstrip("/")
