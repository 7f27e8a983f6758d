"""The files of a directory of this machine, opened so that no link leads out of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from typing import TYPE_CHECKING

from typing_extensions import override

from mlab_agent.workspaces.files import MIB, FileKind, Files, FileStamp, WorkspaceError, matches_itself
from mlab_agent.workspaces.safe_fs import SafeDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class LocalFiles(Files):
    """The files of a directory of this machine."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.directory = SafeDirectory(root)

    @override
    def resolve(self, path: str) -> str:
        with workspace_errors(path):  # a link may become a directory while it is looked at
            if not self.is_in_place():
                raise WorkspaceError(f"{self.root} is not the workspace any more: it was moved, replaced or removed")
            return self._relative(os.path.realpath(os.path.join(self.root, path)), path)  # noqa: PTH118 - no "." is to go

    @override
    def stat(self, name: str) -> FileStamp | None:
        with workspace_errors(name):
            try:
                return _stamp(self.directory.stat(name))
            except (FileNotFoundError, NotADirectoryError):
                return None

    @override
    def stamps(self, names: Iterable[str]) -> dict[str, FileStamp]:
        stamps = {}
        for name in names:
            with contextlib.suppress(OSError):
                stamps[name] = self._with_target(name, _stamp(self.directory.stat(name)))
        return stamps

    @override
    def entries(self, name: str) -> dict[str, FileStamp]:
        stamps = {}
        with workspace_errors(name), self.directory.scan(name) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    stamps[entry.name] = _stamp(entry.stat(follow_symlinks=False))
        return stamps

    @override
    def scan(self, excluded: Sequence[str]) -> dict[str, FileStamp]:
        stamps: dict[str, FileStamp] = {}
        pending = [""]
        while pending:
            prefix = pending.pop()
            with contextlib.suppress(OSError), self.directory.scan(prefix.rstrip("/") or ".") as entries:
                for entry in entries:
                    name = f"{prefix}{entry.name}"
                    if not matches_itself(name, excluded):
                        with contextlib.suppress(OSError):
                            stamps[name] = self._with_target(name, _stamp(entry.stat(follow_symlinks=False)))
                            if stamps[name].kind == "directory":
                                pending.append(f"{name}/")
        return stamps

    @override
    def read(self, name: str) -> bytes:
        with workspace_errors(name), open(self.directory.open(name), "rb") as file:  # noqa: PTH123 - a descriptor
            return file.read()

    @override
    def write(self, name: str, data: bytes, mode: int | None = None) -> None:
        with (
            workspace_errors(name),
            self.directory.replacement(name, mode) as descriptor,
            open(descriptor, "wb", closefd=False) as file,
        ):
            file.write(data)

    @override
    def copy(self, source: str, destination: str) -> None:
        with (
            workspace_errors(destination),
            open(self.directory.open(source), "rb") as old,  # noqa: PTH123
            self.directory.replacement(destination) as descriptor,
            open(descriptor, "wb", closefd=False) as new,
        ):
            shutil.copyfileobj(old, new, MIB)

    @override
    def link(self, name: str, target: str) -> None:
        with workspace_errors(name):
            self.directory.link(name, target)

    @override
    def make_directory(self, name: str) -> None:
        with workspace_errors(name):
            self.directory.make_directory(name)

    @override
    def delete(self, name: str) -> None:
        with workspace_errors(name):
            self.directory.delete(name)

    def _with_target(self, name: str, stamp: FileStamp) -> FileStamp:
        if stamp.kind != "link":
            return stamp
        return FileStamp(stamp.kind, stamp.size, stamp.mode, stamp.changed, self.directory.target(name))

    def is_in_place(self) -> bool:
        """Tell whether the directory's path still leads to it."""
        try:
            return os.path.samestat(os.lstat(self.root), self.directory.stat("."))
        except OSError:
            return False

    def put_back(self) -> str | None:
        """Move the directory back to its path if it was moved; return a sentence about what was done."""
        if self.is_in_place():
            return None
        parent = os.path.dirname(self.root)  # noqa: PTH120
        try:
            if os.path.realpath(parent) != parent:
                return f"The script moved the workspace, and {parent} is a link now: put it back yourself."
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            if os.path.lexists(self.root):
                os.rename(self.root, f"{self.root}.{os.urandom(4).hex()}")  # noqa: PTH104
            os.rename(os.readlink(f"/proc/self/fd/{self.directory.descriptor}"), self.root)  # noqa: PTH104, PTH115
        except OSError as error:
            return f"The script moved or removed the workspace, which could not be put back: {error.strerror}"
        return "The script moved the workspace; it was put back."


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _stamp(status: os.stat_result) -> FileStamp:
    kind = _kind(status.st_mode)
    changed = (
        "" if kind == "directory" else f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
    )
    return FileStamp(kind, status.st_size, stat.S_IMODE(status.st_mode), changed)


@contextlib.contextmanager
def workspace_errors(name: str) -> Iterator[None]:
    """Turn the system's errors into observations."""
    try:
        yield
    except OSError as error:
        raise WorkspaceError(f"{name}: {error.strerror or error}") from None
