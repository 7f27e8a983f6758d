"""Read-only files that a script may have changed: they are compared by their stamps and restored from copies.

Copies of files up to a size are made when the workspace is opened. A change of a longer file can only be reported.
Which files these are, a task says in ``read_only_files.txt``, as MLAgentBench's tasks do.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mlab_agent.workspaces.files import WorkspaceError, parents_and_self

LIST_NAME = "read_only_files.txt"
"""The name that MLAgentBench's tasks give to their list of read-only files."""

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from mlab_agent.workspaces.files import Files, FileStamp


def read_patterns(file: Path) -> tuple[str, ...]:
    """Return the patterns of a list of read-only files, one a line.

    Raises:
        OSError: if it cannot be read.
    """
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def list_of_task(task_file: Path | None, workdir: Path | None) -> Path | None:
    """Return a task's list: beside its text, or in ``scripts`` of the workspace; None if it has none."""
    places = [task_file.parent if task_file else None, workdir / "scripts" if workdir else None]
    lists = [place / LIST_NAME for place in places if place is not None]
    return next((path for path in lists if path.is_file()), None)


def mount_points(files: Files, names: Iterable[str], limit: int) -> list[str]:
    """Return files and directories to mount read-only: these, or of too many also the directories that hold no others.

    Args:
        files: access to the workspace.
        names: what is to be read-only.
        limit: the most that are returned. The time to mount them grows with the square of their number.
    """
    points = set(names)
    if len(points) > limit:
        parents = {parent for name in points for parent in parents_and_self(name)[:-1]}
        for parent in sorted(parents, key=lambda name: -name.count("/")):
            if (entries := {f"{parent}/{entry}" for entry in files.entries(parent)}) <= points:
                points = points.difference(entries) | {parent}
    kinds = {name: stamp.kind for name, stamp in files.stamps(points).items() if stamp.kind in {"file", "directory"}}
    return sorted(kinds, key=lambda name: (kinds[name] == "file", name))[:limit]


class ReadOnlyFiles:
    """The read-only files of a workspace as they were in the beginning."""

    def __init__(
        self,
        files: Files,
        names: Iterable[str],
        copies: Path | None,
        copy_limit: int,
        copies_limit: int,
        *,
        uncopied: Collection[str] = (),
    ) -> None:
        """Look at the files and copy them.

        Args:
            files: access to the workspace.
            names: of its read-only files.
            copies: a directory outside of the workspace; None for no copies.
            copy_limit: bytes of the longest file that is copied.
            copies_limit: bytes of all copies together.
            uncopied: names that need no copy.
        """
        self._files = files
        self._stamps = files.stamps(names)
        self._copies: dict[str, Path] = {}
        self._digests: dict[str, str] = {}
        for name, stamp in self._stamps.items():
            if copies is None or stamp.kind != "file" or name in uncopied:
                continue
            if stamp.size <= min(copy_limit, copies_limit):
                self._copy(name, copies)
                copies_limit -= stamp.size

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return list(self._stamps)

    def restore(self) -> list[str]:
        """Undo all changes of the files; return a sentence about each one that was changed."""
        if not self._stamps:
            return []
        now = self._files.stamps(self._stamps)
        changed = [name for name, stamp in self._stamps.items() if now.get(name) != stamp]
        notes = [note for name in changed if (note := self._restore_file(name, now.get(name)))]
        if changed:
            self._stamps |= self._files.stamps(changed)
        return notes

    def _copy(self, name: str, directory: Path) -> None:
        data = self._files.read(name)
        self._digests[name] = hashlib.sha256(data).hexdigest()
        directory.mkdir(parents=True, exist_ok=True)
        copy = self._copies[name] = directory / self._digests[name]
        if not copy.exists():
            copy.write_bytes(data)

    def _restore_file(self, name: str, stamp: FileStamp | None) -> str | None:
        if self._stamps[name].kind == "link":
            return self._restore_link(name, stamp)
        digest = self._digests.get(name)
        if digest is None:
            change = "removed" if stamp is None else "changed, or touched"
            return f"The script {change} the read-only file {name}, of which there is no copy: put it back yourself."
        try:
            if stamp is not None and hashlib.sha256(self._files.read(name)).hexdigest() == digest:
                return None
        except WorkspaceError:
            pass
        try:
            data = self._copies[name].read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != digest:
            return f"The script changed the read-only file {name}, and our copy of it is damaged."
        try:
            self._remove_obstacles(name)
            self._files.write(name, data, self._stamps[name].mode)
        except WorkspaceError as error:
            return f"The script changed the read-only file {name}, which could not be put back: {error}"
        return f"The script changed the read-only file {name}; it was put back."

    def _restore_link(self, name: str, stamp: FileStamp | None) -> str | None:
        target = self._stamps[name].target
        if stamp is not None and (stamp.kind, stamp.target) == ("link", target):
            return None
        try:
            self._remove_obstacles(name)
            self._files.link(name, target)
        except WorkspaceError as error:
            return f"The script changed the read-only link {name}, which could not be put back: {error}"
        return f"The script changed the read-only link {name}; it was put back."

    def _remove_obstacles(self, name: str) -> None:
        """Remove links and files where a directory above the file was, and a directory in the file's own place."""
        for ancestor in parents_and_self(name):
            stamp = self._files.stamps([ancestor]).get(ancestor)
            if stamp is not None and (stamp.kind == "directory") == (ancestor == name):
                self._files.delete(ancestor)
