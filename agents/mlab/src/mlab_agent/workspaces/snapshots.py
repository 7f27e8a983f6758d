"""Snapshots of a workspace, as commits of a git repository that belongs to the run.

The repository is outside of what scripts can write, and has no work tree: files are written to it by ``git
fast-import``, with the contents that changed, so that it works for a directory as for a session of a server. ``git
--git-dir RUN/workspace.git log --stat`` shows the history of a run.

Not in a snapshot: directories with no file, ``.git`` directories, files that are too long, and modes but for the
executable bit.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from mlab_agent.workspaces.files import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mlab_agent.workspaces.files import Files, FileStamp

STORE = "workspace.git"
"""The name of the repository in the directory of a run."""
_FILE, _EXECUTABLE, _LINK = "100644", "100755", "120000"
_TOO_LONG = "too long: "
_OPTIONS = ("core.fsync=none", "core.protectNTFS=false", "core.protectHFS=false", "gc.auto=0")
_OWNER_EXECUTES = 0o100


class Entry(NamedTuple):
    """A file of a snapshot."""

    mode: str
    blob: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose target is its content."""
        return self.mode == _LINK


class Store:
    """The repository, which is made when something is first written to it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._index_file = directory / "mlab-index.json"
        self._index: dict[str, list[str]] | None = None
        self._last: tuple[list[tuple[str, Entry]], list[str], str] | None = None
        self._parent: str | None = None

    @property
    def exists(self) -> bool:
        """Whether anything was ever written."""
        return (self._directory / "HEAD").exists()

    def put(self, data: bytes) -> str:
        """Store a content, and return its id; one of the last snapshot is there already."""
        blob = _blob_id(data)
        if any(known == blob for _changed, known in self._known().values()):
            return blob
        self._make()
        return self._git("hash-object", "-w", "--stdin", data=data).decode().strip()

    def get(self, blob: str) -> bytes:
        """Return a stored content.

        Raises:
            WorkspaceError: if it is not there.
        """
        return self._git("cat-file", "blob", blob)

    def entries(self, snapshot: str) -> dict[str, Entry]:
        """Return the files and links of a snapshot by name; errors as in :meth:`get`."""
        entries = {}
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", snapshot).split(b"\0")[:-1]:
            about, _tab, name = line.partition(b"\t")
            mode, _kind, blob = about.decode().split()
            entries[name.decode(errors="surrogateescape")] = Entry(mode, blob)
        return entries

    def too_long(self, snapshot: str) -> list[str]:
        """Return the names of the files that a snapshot left out because of their length."""
        message = self._git("show", "--no-patch", "--format=%B", snapshot).decode(errors="surrogateescape")
        return [json.loads(line.removeprefix(_TOO_LONG)) for line in message.split("\n") if line.startswith(_TOO_LONG)]

    def save(self, files: Files, stamps: Mapping[str, FileStamp], *, limit: int, title: str) -> str:
        """Store the workspace; what has the same stamp as before is not read again.

        Args:
            files: of the workspace.
            stamps: of what is to be saved.
            limit: bytes of the longest file that is saved.
            title: the first line of the commit's message.

        Returns:
            The name of the snapshot.
        """
        entries: list[tuple[str, Entry]] = []
        too_long: list[str] = []
        contents: list[bytes] = []
        index = self._known()
        for name in sorted(stamps):
            stamp = stamps[name]
            if stamp.kind not in {"file", "link"} or ".git" in name.lower().split("/"):
                continue
            if stamp.size > limit:
                too_long.append(name)
                continue
            if (blob := self._unchanged(name, stamp)) is None:
                try:
                    data = os.fsencode(stamp.target) if stamp.kind == "link" else files.read(name)
                except WorkspaceError:  # removed meanwhile, or unreadable
                    too_long.append(name)
                    continue
                blob = _blob_id(data)
                contents.append(data)
                index[name] = [stamp.changed, blob]
            mode = _EXECUTABLE if stamp.mode & _OWNER_EXECUTES else _FILE
            entries.append((name, Entry(_LINK if stamp.kind == "link" else mode, blob)))
        if self._last and self._last[:2] == (entries, too_long):
            return self._last[2]
        snapshot = self._parent = self._commit(contents, entries, too_long, title)
        self._last = (entries, too_long, snapshot)
        if contents:
            part = self._index_file.with_suffix(".part")
            part.write_text(json.dumps(index), encoding="utf-8")
            part.replace(self._index_file)
        return snapshot

    def restore(self, snapshot: str, files: Files, now: Mapping[str, FileStamp], *, limit: int) -> None:
        """Make a workspace what it was, as far as the snapshot has it.

        Args:
            snapshot: what :meth:`save` returned.
            files: of the workspace.
            now: the present stamps.
            limit: as in :meth:`save`; longer files are left alone.

        Raises:
            WorkspaceError: if the snapshot is not there.
        """
        entries = self.entries(snapshot)
        self._parent, self._last = snapshot, None
        kept = {above for name in (*entries, *self.too_long(snapshot)) for above in _with_parents(name)}
        used = {above for name in now for above in _with_parents(name)[:-1]}
        for name in sorted(now, key=lambda name: name.count("/"), reverse=True):
            stamp = now[name]
            if stamp.kind == "directory":
                if name in entries or (name in used and name not in kept):
                    files.delete(name)
            elif name not in kept and stamp.size <= limit:
                files.delete(name)
        for name, entry in entries.items():
            stamp_now = now.get(name)
            if entry.is_link:
                if stamp_now is None or stamp_now.kind != "link" or self._unchanged(name, stamp_now) != entry.blob:
                    files.link(name, os.fsdecode(self.get(entry.blob)))
            elif stamp_now is None or stamp_now.kind != "file" or self._unchanged(name, stamp_now) != entry.blob:
                files.write(name, self.get(entry.blob), 0o755 if entry.mode == _EXECUTABLE else 0o644)
            elif bool(stamp_now.mode & _OWNER_EXECUTES) != (entry.mode == _EXECUTABLE):
                files.write(name, self.get(entry.blob), stamp_now.mode ^ 0o111)

    def _known(self) -> dict[str, list[str]]:
        """Return the ids of contents by name, each with the stamp that it belongs to."""
        if self._index is None:
            try:
                self._index = json.loads(self._index_file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self._index = {}
        return self._index

    def _unchanged(self, name: str, stamp: FileStamp) -> str | None:
        """Return the id of a file's content if that is stored, by the file's stamp."""
        changed, blob = self._known().get(name, ("", ""))
        return blob if changed == stamp.changed else None

    def _commit(self, contents: list[bytes], entries: list[tuple[str, Entry]], too_long: list[str], title: str) -> str:
        self._make()
        stream = [b"blob\ndata %d\n%b\n" % (len(data), data) for data in contents]
        message = "\n".join([title, "", *(f"{_TOO_LONG}{json.dumps(name)}" for name in too_long)]).encode()
        stream.append(b"commit refs/heads/run\nmark :1\ncommitter mlab-agent <mlab-agent> now\n")
        stream.append(b"data %d\n%b\n" % (len(message), message))
        if self._parent is not None:
            stream.append(f"from {self._parent}\ndeleteall\n".encode())
        stream += [f"M {entry.mode} {entry.blob} ".encode() + _quoted(name) + b"\n" for name, entry in entries]
        stream.append(b"get-mark :1\n")
        return (
            self._git("fast-import", "--quiet", "--force", "--date-format=now", data=b"".join(stream)).decode().strip()
        )

    def _make(self) -> None:
        if not self.exists:
            self._directory.parent.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", "--bare")

    def _git(self, *command: str, data: bytes = b"") -> bytes:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        words = [git_program(), "--git-dir", str(self._directory), *options, *command]
        done = subprocess.run(words, input=data, capture_output=True, env=_environment(), check=False)
        if done.returncode:
            problem = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise WorkspaceError(f"git {command[0]} failed in {self._directory}: {problem}")
        return done.stdout


@functools.cache
def git_program() -> str:
    """Return the path of git.

    Raises:
        WorkspaceError: if it is not installed.
    """
    program = shutil.which("git", path="/usr/bin:/bin") or shutil.which("git")
    if program is None:
        raise WorkspaceError("git is not installed; the agent keeps its snapshots with it: install git")
    return program


def _environment() -> dict[str, str]:
    """Return an environment in which no configuration of a user counts."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**others, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _quoted(name: str) -> bytes:
    raw = name.encode(errors="surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def _with_parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
