"""What all workspaces share: the model's paths, read-only files, whole reads and writes, scripts, snapshots."""

from __future__ import annotations

import abc
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlab_agent.workspaces.files import (
    AGENT_DIRECTORY,
    MIB,
    SKIPPED_DIRECTORIES,
    FileKind,
    WorkspaceError,
    matches,
    normalised,
    parents_and_self,
)
from mlab_agent.workspaces.snapshots import STORE, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mlab_agent.workspaces.files import Files

    ShowOutput = Callable[[str, str], None]

_COPIED_BYTES = 256 * MIB  # of all read-only files together
_COPIED_FILE_BYTES = 64 * MIB


@dataclass(frozen=True)
class DirectoryEntry:
    """One entry of a directory."""

    name: str
    kind: FileKind
    size: int
    read_only: bool = False


@dataclass(frozen=True)
class ScriptResult:
    """The output and the exit status of a script."""

    stdout: str
    """What it wrote; of a long text the middle is left out."""
    stderr: str
    status: int | None
    """Exit status, negative for a signal; None if it was stopped, at its time limit or with its server."""
    timed_out: bool
    seconds: float
    output_file: str | None
    """The path in the workspace of a file with the whole output, where some of it is left out above."""
    notes: tuple[str, ...] = ()
    """What else the model should know, such as read-only files that the script changed and that were restored."""


class Workspace(abc.ABC):
    """A directory to work in, and how its scripts run. Paths are as the model wrote them.

    Every method may raise :class:`~mlab_agent.workspaces.files.WorkspaceError`, whose message is for the model.
    """

    instructions: str | None = None
    """The task, where the workspace brings it."""
    gives_scores = False
    """Whether :meth:`score` can be asked for."""
    finished = False
    """Whether the episode has ended; nothing else works then."""
    left_open = False
    """Whether :meth:`close` leaves a session of a server open, so that a resumed run can go on in it."""
    final: Mapping[str, object] | None = None
    """The metadata of the final score, once there is one."""

    def __init__(
        self,
        files: Files,
        *,
        state: Path,
        python: str,
        read_only: Sequence[str],
        read_limit: int,
        snapshot_limit: int,
        snapshot_excludes: Sequence[str],
    ) -> None:
        """Set the rules of a workspace.

        Args:
            files: access to the directory.
            state: the run's directory, which gets the repository of snapshots.
            python: the program that runs Python files.
            read_only: names or patterns of files and directories that must stay as they are; ``*`` matches slashes too,
                and ``./`` at the beginning means the workspace itself, not what is below.
            read_limit: bytes of the longest file that is read.
            snapshot_limit: bytes of the longest file in a snapshot.
            snapshot_excludes: names or patterns of what else snapshots leave out.
        """
        self.files = files
        self.step = ""
        """Which step is being carried out; no two of a run have the same text."""
        self.show_output: ShowOutput | None = None
        """Called with the output of scripts, as soon as the workspace can have it."""
        self.rewards: list[float] = []
        """The reward of each attempt, for whoever evaluates; the model is told the text alone."""
        self._python = python
        self._read_only = tuple(map(normalised, read_only))
        self._read_limit = read_limit
        self._snapshot_limit = snapshot_limit
        self._snapshot_excludes = (*SKIPPED_DIRECTORIES, *self._read_only, *map(normalised, snapshot_excludes))
        self.store = Store(state / STORE)
        self._read_only_files = ReadOnlyFiles(files, self.store, self._unprotected(self._read_only_names()))

    @property
    def root(self) -> str:
        """The path of the workspace, as scripts see it."""
        return self.files.root

    def name(self, path: str) -> str:
        """Return the one name of a path: relative to the workspace, without links and ``..``.

        Raises:
            WorkspaceError: if it leads out of the workspace, or is no path at all.
        """
        if not path.strip() or "\0" in path:
            raise WorkspaceError("the path is empty" if not path.strip() else "a path cannot have a NUL character")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise WorkspaceError("the path is no valid text") from None
        return self.files.resolve(path)

    def check_writable(self, path: str) -> None:
        """Check that a file may be written.

        Raises:
            WorkspaceError: if it is read-only, a directory, or out of the workspace.
        """
        name = self.name(path)
        # a link may have the name of a read-only file
        for candidate in dict.fromkeys((name, self.files.resolve_lexically(path))):
            if self._is_read_only(candidate):
                raise WorkspaceError(f"{path} is read-only: {candidate} must stay as it is")
        stamp = self.files.stat(name)
        if stamp is not None and stamp.kind != "file":
            raise WorkspaceError(f"{path} is a {stamp.description}, not a file")

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or directory."""
        return self.files.stat(self.name(path)) is not None

    def list_directory(self, path: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name."""
        name = self.name(path)
        stamp = self.files.stat(name)
        if stamp is None or stamp.kind != "directory":
            raise WorkspaceError(f"{path} {'does not exist' if stamp is None else 'is no directory'}")
        return [
            DirectoryEntry(base, entry.kind, entry.size, self._is_read_only(base if name == "." else f"{name}/{base}"))
            for base, entry in sorted(self.files.entries(name).items())
        ]

    def read(self, path: str) -> str:
        """Return a whole text, as UTF-8, whatever is not UTF-8 replaced.

        Raises:
            WorkspaceError: if there is none, or if it is too long to be read at once: no text is ever a part.
        """
        return self.read_bytes(path).decode(errors="replace")

    def read_bytes(self, path: str) -> bytes:
        """Return a whole file; errors as in :meth:`read`."""
        name = self.name(path)
        self._check_file(name, path)
        return self.files.read(name)

    def write(self, path: str, text: str) -> None:
        """Write a whole text, or nothing at all; directories are made."""
        try:
            self.write_bytes(path, text.encode())
        except UnicodeEncodeError:
            raise WorkspaceError("the text cannot be written as UTF-8") from None

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a whole file, or nothing at all."""
        self.check_writable(path)
        self.files.write(self.name(path), data)

    def copy(self, source: str, destination: str) -> None:
        """Copy a file over another one, or to a new name."""
        name = self.name(source)
        self._check_file(name, source, limited=False)
        self.check_writable(destination)
        self.files.copy(name, self.name(destination))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.check_writable(path)
        name = self.name(path)
        self._check_file(name, path, limited=False)
        self.files.delete(name)

    def execute(self, script: str, arguments: Sequence[str], timeout_s: float) -> ScriptResult:
        """Run a script in the workspace: Python files with Python, ``.sh`` with bash, others by themselves.

        All of its processes have ended afterwards.
        """
        name = self.name(script)
        self._check_file(name, script, limited=False)
        if any("\0" in argument for argument in arguments):
            raise WorkspaceError("an argument cannot have a NUL character")
        return self._run_command(name, [*self._interpreter(name), f"./{name}", *arguments], timeout_s)

    @abc.abstractmethod
    def _run_command(self, name: str, command: Sequence[str], timeout_s: float) -> ScriptResult:
        """Run the command of the script ``name`` in the workspace, and restore read-only files afterwards."""

    def score(self) -> str | None:
        """Have the workspace scored, and return the scorer's message; None where there are no scores."""
        return None

    def interrupted_score(self) -> str | None:
        """Return what is known of the score that a killed agent had asked for in this step; None to ask for it now."""
        return None

    @abc.abstractmethod
    def finish(self, answer: str) -> None:
        """Hand the answer in: write the submission, or end the episode. May be called again, with the same effect."""

    def snapshot(self) -> str:
        """Save the workspace in the run's repository; return the snapshot's name."""
        stamps = self.files.scan(self._snapshot_excludes)
        return self.store.save(self.files, stamps, limit=self._snapshot_limit, title=f"step {self.step or 0}")

    def restore(self, snapshot: str) -> None:
        """Make the workspace what it was; read-only and excluded files are not touched."""
        self.store.restore(snapshot, self.files, self.files.scan(self._snapshot_excludes), limit=self._snapshot_limit)

    @abc.abstractmethod
    def close(self) -> None:
        """End what runs; the files stay, except those of an ORS session. May be called again."""

    def _is_read_only(self, name: str) -> bool:
        return matches(name, (AGENT_DIRECTORY, *self._read_only))

    def _read_only_names(self) -> list[str]:
        if not self._read_only:
            return []
        stamps = self.files.scan(())
        names = [name for name in stamps if self._is_read_only(name) and stamps[name].kind != "directory"]
        return [name for name in names if not matches(name, (AGENT_DIRECTORY,))]

    def _unprotected(self, names: list[str]) -> list[str]:
        """Return those read-only files that scripts can change, which are compared and restored afterwards."""
        return names

    def _interpreter(self, name: str) -> list[str]:
        if name.endswith(".py"):
            return [self._python, "-u"]
        if name.endswith((".sh", ".bash")):
            return ["bash"]
        stamp = self.files.stat(name)
        if stamp and stamp.mode & stat.S_IXUSR:
            return []
        raise WorkspaceError(
            f"{name} cannot be run: it is neither a Python file (.py) nor a shell script (.sh), and not executable"
        )

    def _check_file(self, name: str, path: str, *, limited: bool = True) -> None:
        stamp = self.files.stat(name)
        if stamp is None:
            raise WorkspaceError(f"{path} does not exist")
        if stamp.kind != "file":
            raise WorkspaceError(f"{path} is a {stamp.description}, not a file")
        if limited and stamp.size > self._read_limit:
            size, limit = stamp.size / MIB, self._read_limit / MIB
            raise WorkspaceError(
                f"{path} has {size:.1f} MiB; files of at most {limit:g} MiB are read and kept: use a script for it"
            )


class ReadOnlyFiles:
    """The read-only files that scripts can reach: compared by their stamps, and restored from the run's repository."""

    def __init__(self, files: Files, store: Store, names: Sequence[str]) -> None:
        """Look at the files, and store their contents if they are not too long."""
        self._files, self._store = files, store
        self._stamps = files.stamps(names)
        self._blobs: dict[str, str] = {}
        left = _COPIED_BYTES
        for name, stamp in self._stamps.items():
            if stamp.kind == "file" and stamp.size <= min(left, _COPIED_FILE_BYTES):
                self._blobs[name] = store.put(files.read(name))
                left -= stamp.size

    def restore(self) -> list[str]:
        """Undo all changes of the files; return a sentence about each one that was changed."""
        now = self._files.stamps(self._stamps)
        changed = [name for name, stamp in self._stamps.items() if now.get(name) != stamp]
        notes = [f"The script changed the read-only file {name}{self._restore_file(name)}" for name in changed]
        self._stamps |= self._files.stamps(changed)
        return notes

    def _restore_file(self, name: str) -> str:
        """Put a file back; return the end of the sentence about it."""
        before = self._stamps[name]
        if before.kind != "link" and name not in self._blobs:
            return ", of which there is no copy: put it back yourself."
        try:
            for ancestor in parents_and_self(name):  # a link or file where a directory was, or the other way round
                stamp = self._files.stat(ancestor)
                if stamp is not None and (stamp.kind == "directory") == (ancestor == name):
                    self._files.delete(ancestor)
            if before.kind == "link":
                self._files.link(name, before.target)
            else:
                self._files.write(name, self._store.get(self._blobs[name]), before.mode)
        except WorkspaceError as error:
            return f", which could not be put back: {error}"
        return "; it was put back."
