"""Open files below a directory so that no link leads out of it, whatever other processes change meanwhile."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ROOT_USER = 0


class SafeDirectory:
    """The files below a directory. Names are relative, resolved, and without ``..``; a link in one is an error."""

    def __init__(self, root: str) -> None:
        """Open the directory."""
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @property
    def descriptor(self) -> int:
        """The open directory."""
        return self._root

    def close(self) -> None:
        """Close the directory."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def parent(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory that a name is in; yield its descriptor and the last part of the name.

        Raises:
            OSError: if there is no such directory.
        """
        *parents, last = name.split("/")
        directory = os.dup(self._root)
        try:
            for part in parents:
                if make:
                    _make_directory(part, directory)
                child = os.open(part, _DIRECTORY_FLAGS, dir_fd=directory)
                os.close(directory)
                directory = child
            yield directory, last
        finally:
            os.close(directory)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of a file, no link followed."""
        if name == ".":
            return os.fstat(self._root)
        with self.parent(name) as (directory, last):
            return os.stat(last, dir_fd=directory, follow_symlinks=False)

    def open(self, name: str) -> int:
        """Open a file for reading.

        Raises:
            OSError: if there is none.
        """
        with self.parent(name) as (directory, last):
            file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(f"{name} is no file")
        return file

    @contextlib.contextmanager
    def scan(self, name: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Open the entries of a directory, whose paths are of no use.

        Raises:
            OSError: if there is no such directory.
        """
        place = "." if name == "." else f"{name}/."
        with self.parent(place) as (directory, _last), os.scandir(directory) as entries:
            yield entries

    def target(self, name: str) -> str:
        """Return where a link leads; errors as in :meth:`scan`."""
        with self.parent(name) as (directory, last):
            return os.readlink(last, dir_fd=directory)

    @contextlib.contextmanager
    def replacement(self, name: str, mode: int | None = None) -> Iterator[int]:
        """Yield a descriptor of a new file that replaces ``name`` when the block ends without an error."""
        with self.parent(name, make=True) as (directory, last):
            old = None
            with contextlib.suppress(FileNotFoundError):
                old = os.stat(last, dir_fd=directory, follow_symlinks=False)
            part = f".mlab-agent-{secrets.token_hex(6)}"
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
            try:
                if mode is not None or old is not None:
                    os.fchmod(file, stat.S_IMODE(old.st_mode) if mode is None and old is not None else mode or 0)
                if os.geteuid() == _ROOT_USER:  # whose scripts run as the owner of the workspace
                    owner = old or os.fstat(directory)
                    os.fchown(file, owner.st_uid, owner.st_gid)
                yield file
                os.replace(part, last, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(part, dir_fd=directory)
                raise
            finally:
                os.close(file)

    def link(self, name: str, target: str) -> None:
        """Make a symbolic link, which replaces a file or link."""
        with self.parent(name, make=True) as (directory, last):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(last, dir_fd=directory)
            os.symlink(target, last, dir_fd=directory)

    def make_directory(self, name: str) -> None:
        """Make a directory and its parents."""
        with self.parent(f"{name}/.", make=True):
            pass

    def delete(self, name: str) -> None:
        """Remove a file, a link, or an empty directory; a directory that is not empty stays."""
        with self.parent(name) as (directory, last):
            try:
                os.unlink(last, dir_fd=directory)
            except (IsADirectoryError, PermissionError):
                with contextlib.suppress(OSError):
                    os.rmdir(last, dir_fd=directory)


def replace_file(directory: SafeDirectory, name: str, data: bytes) -> None:
    """Write a whole file in place of whatever is there: a link is not followed, a directory goes aside.

    Raises:
        OSError: if it cannot be written.
    """
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(directory.stat(name).st_mode):
            with directory.parent(name) as (parent, last):
                os.rename(last, f"{last}.{secrets.token_hex(4)}", src_dir_fd=parent, dst_dir_fd=parent)
    with directory.replacement(name) as descriptor, open(descriptor, "wb", closefd=False) as file:
        file.write(data)


def _make_directory(name: str, directory: int) -> None:
    """Make a directory, if it is missing, which belongs to the owner of the one that it is in."""
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return
    if os.geteuid() == _ROOT_USER:
        owner = os.fstat(directory)
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)
