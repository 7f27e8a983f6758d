"""Append-only logs of lines: an append is on the disk before it returns, and a kill cannot spoil earlier lines."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from re_bench.data.files import sync_directory
from re_bench.guest.json_depth import check_depth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


LONGEST = 1 << 30
"""Bytes of a log that are read: it is in memory as a whole."""
_LONGEST_LINE = 16 << 20
_LINE = re.compile(rb"[^\n]+")
DEEPEST = 200
"""Arrays and objects of a line in one another: what is deeper, what handles values by recursion cannot."""


class LogError(OSError):
    """The log is not a plain file that can be used; the message says what it is instead."""


class LockedLog:
    """A log while this process alone may append to it."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle

    def lines(self) -> list[bytes]:
        """Return the lines that are there, without newlines; the last one may be torn."""
        return _split(self._read())

    def append(self, line: bytes, *, sync: bool = True) -> None:
        """Add a line, returning only once it is on the disk.

        Earlier bytes are never touched: a newline comes before the line where a kill has left half of another one.

        Args:
            line: without its newline.
            sync: False does not wait for the disk: a power cut may lose the line, a kill of this process cannot.

        Raises:
            OSError: if the system refuses the write, of which a part may be in the file.
        """
        size = os.fstat(self._handle).st_size
        if sync and not size:
            # Before the first line, so that no line is acknowledged in a file that a power cut could unlink.
            sync_directory(self._path.parent)
        torn = size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"
        _write_all(self._handle, b"\n" * torn + line + b"\n")
        if sync:
            os.fsync(self._handle)

    def _read(self) -> bytes:
        with os.fdopen(os.dup(self._handle), "rb") as stream:
            stream.seek(0)
            return stream.read()


@contextmanager
def locked_log(path: Path) -> Iterator[LockedLog]:
    """Open a log for appending, made if need be and readable by its owner alone; others wait until the block ends.

    Raises:
        LogError: if the path is not a plain file or its directory is missing.
    """
    handle = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield LockedLog(path, handle)
    finally:
        os.close(handle)


def read_lines(path: Path, most: int = LONGEST) -> list[bytes]:
    """Return the lines of a log without newlines; a log that does not exist yet is empty.

    Takes no lock, so a line that is being written at this moment may be torn.

    Args:
        path: the log.
        most: bytes that it may have.

    Raises:
        LogError: if the path is not a plain file, or is longer.
    """
    try:
        return _split(read_plain(path, most))
    except FileNotFoundError:
        return []


def read_plain(path: Path, most: int) -> bytes:
    """Return the content of a file that anybody may have put there, without waiting for anyone.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        LogError: if it is not a plain file, or is longer.
        OSError: if it cannot be read.
    """
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(most + 1) if size <= most else b""
        if size > most or len(content) > most:
            raise LogError(errno.EFBIG, f"it is longer than {most} bytes", str(path))
        return content


def read_tail(path: Path, most: int, start: int = 0) -> bytes:
    """Return the last bytes of a file that anybody may have put there, without waiting for anyone.

    Args:
        path: the file.
        most: bytes to return at most.
        start: the offset of the first byte that counts.

    Raises:
        LogError: if it is not a plain file.
        OSError: if it cannot be read.
    """
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as stream:
        stream.seek(max(start, os.fstat(stream.fileno()).st_size - most))
        return stream.read(most)


def read_objects(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the JSON objects of a log, one a line, and how many lines are none, such as those that a kill has torn.

    What the lines say may be anybody's: numbers that JSON does not know, and nesting too deep for us, count as none.

    Raises:
        LogError: if the path is not a plain file.
    """
    objects = [json_object(line) for line in read_lines(path)]
    whole = [entry for entry in objects if entry is not None]
    return whole, len(objects) - len(whole)


def json_object(text: bytes | str) -> dict[str, Any] | None:
    """Return the object that a text is in JSON; None if it is none, or too long or too deep for us."""
    try:
        if len(text) > _LONGEST_LINE:
            return None
        check_depth(text.encode(errors="surrogatepass") if isinstance(text, str) else text, DEEPEST)
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _split(data: bytes) -> list[bytes]:
    return _LINE.findall(data)


def _open(path: Path, flags: int) -> int:
    """Open a regular file, and nothing else, without waiting for anyone."""
    try:
        # Not following links and not blocking: the path may have been prepared by somebody unfriendly.
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        _explain(path, error, creating=bool(flags & os.O_CREAT))
        raise
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise _not_plain(path, mode)
    return handle


def _explain(path: Path, error: OSError, *, creating: bool) -> None:
    """Raise LogError where the system's own message for a failed open would mislead."""
    if creating and error.errno == errno.ENOENT:
        raise LogError(errno.ENOENT, "the directory of the log is missing", str(path)) from error
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(path).st_mode
        if not stat.S_ISREG(mode):
            raise _not_plain(path, mode) from error


def _not_plain(path: Path, mode: int) -> LogError:
    return LogError(errno.EINVAL, f"the log must be a plain file, this is {_kind(mode)}", str(path))


def _kind(mode: int) -> str:
    """Name the kind of a file that is not regular."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def _write_all(handle: int, data: bytes) -> None:
    """Write every byte; the system may take fewer than it is given."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
