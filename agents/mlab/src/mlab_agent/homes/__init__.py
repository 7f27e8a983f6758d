"""Where the agent's files are: a directory here (:mod:`.local`), or a session of an ORS server (:mod:`.ors`).

One interface, so that nothing else in the agent knows the difference. Paths come as the model wrote them; a home
resolves them inside its workspace and refuses what leads out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["PRIVATE", "Entry", "Execution", "Home", "HomeError", "HomeLostError"]

PRIVATE = ".mlab-agent"
"""The directory of a workspace in which the agent keeps outputs; the model may read it and not write it."""


class HomeError(Exception):
    """Something could not be done; the text is an observation for the model."""


class HomeLostError(HomeError):
    """The home is gone, such as the session of a server that was ended: nothing will work any more."""


@dataclass(frozen=True)
class Entry:
    """One thing in a directory."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int
    read_only: bool = False


@dataclass(frozen=True)
class Execution:
    """What came of a script."""

    stdout: str
    """What it wrote; of a long text the middle is left out."""
    stderr: str
    status: int | None
    """Exit status, negative for a signal; None if it was stopped at its time limit."""
    timed_out: bool
    seconds: float
    whole: str | None
    """The path in the workspace of a file with all of both, where a text was cut."""
    notes: tuple[str, ...] = ()
    """What else the model should know, such as read-only files that the script changed and that were put back."""


class Home(Protocol):
    """Where the files are."""

    @property
    def root(self) -> str:
        """The path of the workspace, as scripts see it."""

    @property
    def instructions(self) -> str | None:
        """The task, where the home brings it."""

    @property
    def gives_scores(self) -> bool:
        """Whether :meth:`score` can be asked for."""

    @property
    def finished(self) -> bool:
        """Whether the episode has ended; nothing else works then."""

    def name(self, path: str) -> str:
        """Return the one name of a path: relative to the workspace, without links and ``..``.

        Raises:
            HomeError: if it leads out of the workspace.
        """

    def check_writable(self, path: str) -> None:
        """Check that a file may be written.

        Raises:
            HomeError: if it is read-only, a directory, or out of the workspace.
        """

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or directory."""

    def list(self, path: str) -> list[Entry]:
        """Return what is in a directory, by name."""

    def read(self, path: str) -> str:
        """Return a whole text, as UTF-8, whatever is not UTF-8 replaced.

        Raises:
            HomeError: if there is none, or if it is too long to be read at once: no text is ever a part.
        """

    def read_bytes(self, path: str) -> bytes:
        """Return a whole file; errors as in :meth:`read`."""

    def write(self, path: str, text: str) -> None:
        """Write a whole text, or nothing at all; directories are made."""

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a whole file, or nothing at all."""

    def copy(self, source: str, destination: str) -> None:
        """Copy a file over another one, or to a new name."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def execute(self, script: str, arguments: Sequence[str], timeout_s: float) -> Execution:
        """Run a script in the workspace: Python files with Python, ``.sh`` with bash, others by themselves.

        All of its processes have ended afterwards.
        """

    def score(self) -> str | None:
        """Have the workspace scored, and return what is said of it; None where there are no scores."""

    def finish(self, answer: str) -> None:
        """Hand the answer in: write the submission, or end the episode. May be called again, with the same effect."""

    def snapshot(self, store: Path) -> str:
        """Keep the workspace in a store of snapshots, which costs what has changed, and return the snapshot's name."""

    def restore(self, store: Path, snapshot: str) -> None:
        """Make the workspace what it was; read-only and left-out files are not touched."""

    def close(self) -> None:
        """End what runs; the files stay, except those of an ORS session. May be called again."""
