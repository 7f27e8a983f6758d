"""The interface to the files of a workspace: names and contents, without rules about what may be written.

A *path* is what the model wrote. A *name* is a path resolved: relative to the workspace, without ``..`` and links.
"""

from __future__ import annotations

import abc
import fnmatch
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MIB = 1 << 20
AGENT_DIRECTORY = ".mlab-agent"
"""The directory of a workspace in which the agent keeps outputs; the model may read it and not write it."""
OUTPUT_DIRECTORY = f"{AGENT_DIRECTORY}/outputs"
"""Has the whole output of the last scripts whose output is shown in part."""
KEPT_OUTPUTS = 20
SKIPPED_DIRECTORIES = (AGENT_DIRECTORY, ".git", "__pycache__", ".cache", ".ipynb_checkpoints")
"""Directories that snapshots leave out wherever they are."""

_LONGEST_LINE = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

FileKind = Literal["file", "directory", "link", "other"]


class WorkspaceError(Exception):
    """Something could not be done; the message is an observation for the model."""


class WorkspaceLostError(WorkspaceError):
    """The workspace is gone, such as the session of a server that was ended: no operation works any more."""


@dataclass(frozen=True)
class FileStamp:
    """Metadata that tells whether a file has changed, without reading it."""

    kind: FileKind
    size: int
    mode: int
    changed: str
    """Its inode and times, which no program without privileges can set back."""
    target: str = ""
    """Where a link leads."""

    @property
    def description(self) -> str:
        """The kind in words."""
        return "special file" if self.kind == "other" else self.kind


class Files(abc.ABC):
    """Files below one directory. Every method may raise :class:`WorkspaceError`."""

    root: str
    """The absolute path of the directory, as scripts see it."""

    @abc.abstractmethod
    def resolve(self, path: str) -> str:
        """Return the name of a path with all links followed, "." for the directory itself.

        Raises:
            WorkspaceError: if it leads out of the workspace.
        """

    def resolve_lexically(self, path: str) -> str:
        """Return the name of a path with no link followed, or the real name if that path seems to lead out."""
        try:
            return self._relative(posixpath.normpath(posixpath.join(self.root, path)), path)
        except WorkspaceError:
            return self.resolve(path)

    @abc.abstractmethod
    def stat(self, name: str) -> FileStamp | None:
        """Return the stamp of a file or directory, None if it does not exist."""

    @abc.abstractmethod
    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        """Return the stamps of those names that exist, no links followed."""

    @abc.abstractmethod
    def entries(self, name: str) -> Mapping[str, FileStamp]:
        """Return the entries of a directory by their last part, in any order."""

    @abc.abstractmethod
    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        """Return all files, links and directories, except those that match a pattern and what is in them."""

    @abc.abstractmethod
    def read(self, name: str) -> bytes:
        """Return a whole file."""

    @abc.abstractmethod
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        """Write a whole file or nothing; parents are made, and None keeps the mode that the file has."""

    @abc.abstractmethod
    def copy(self, source: str, destination: str) -> None:
        """Copy a file over another one, whose mode is kept, or to a new name."""

    @abc.abstractmethod
    def link(self, name: str, target: str) -> None:
        """Make a symbolic link, which replaces a file or link."""

    @abc.abstractmethod
    def make_directory(self, name: str) -> None:
        """Make a directory and its parents."""

    @abc.abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file or link, or an empty directory; a directory that is not empty stays."""

    def _relative(self, absolute: str, path: str) -> str:
        """Return the name of an absolute path; raise if it leads out of the workspace."""
        if absolute == self.root:
            return "."
        prefix = self.root.rstrip("/") + "/"
        if not absolute.startswith(prefix):
            raise WorkspaceError(f"{path} leads out of the workspace, which is {self.root}")
        return absolute[len(prefix) :]


def parents_and_self(name: str) -> list[str]:
    """Return the directories above a name, the outermost first, and the name itself."""
    parts = name.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a name or a directory above it matches a pattern.

    A pattern without a slash is for any directory, one that begins with a slash for exactly its own level.
    """
    return any(matches_itself(above, patterns) for above in parents_and_self(name))


def matches_itself(name: str, patterns: Sequence[str]) -> bool:
    """As :func:`matches`, without the directories above."""
    base = name.rpartition("/")[2]
    return any(
        fnmatch.fnmatchcase(f"/{name}", pattern) and name.count("/") == pattern.count("/") - 1
        if pattern.startswith("/")
        else fnmatch.fnmatchcase(name, pattern) or ("/" not in pattern and fnmatch.fnmatchcase(base, pattern))
        for pattern in patterns
    )


def printable(line: str) -> str:
    """Return a line without control characters, by which a script could write to the terminal at will."""
    line = _COLOUR.sub("", line)
    shortened = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in shortened)
