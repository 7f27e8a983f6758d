"""What all workspaces share about files: errors, metadata, patterns of names.

A *path* is what the model wrote. A *name* is a path resolved: relative to the workspace, without ``..`` and links.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1 << 20
AGENT_DIRECTORY = ".mlab-agent"
"""The directory of a workspace for outputs of scripts; the model may read it and not write it."""
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
        """The kind as text."""
        return "special file" if self.kind == "other" else self.kind


def parents_and_self(name: str) -> list[str]:
    """Return the directories above a name, the outermost first, and the name itself."""
    parts = name.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def normalised(pattern: str) -> str:
    """Return a pattern as :func:`matches` takes it: ``./`` at the beginning stands for the workspace itself."""
    top = "/" if pattern.startswith(("./", "/")) else ""
    return top + posixpath.normpath(pattern).lstrip("/")


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a name or a directory above it matches a pattern.

    A pattern without a slash is for any directory, one that begins with a slash for exactly its own level.
    """
    return any(_matches_itself(above, pattern) for above in parents_and_self(name) for pattern in patterns)


def _matches_itself(name: str, pattern: str) -> bool:
    if pattern.startswith("/"):
        return fnmatch.fnmatchcase(f"/{name}", pattern) and name.count("/") == pattern.count("/") - 1
    base = name.rpartition("/")[2]
    return fnmatch.fnmatchcase(name, pattern) or ("/" not in pattern and fnmatch.fnmatchcase(base, pattern))


def printable(line: str) -> str:
    """Return a line without control characters, by which a script could write to the terminal at will."""
    line = _COLOUR.sub("", line)
    shortened = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in shortened)
