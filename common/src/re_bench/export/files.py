"""Writing the files of an export: the same bytes and modes each time, whatever umask and whoever writes.

Directories and executable files have the mode 755, other files 644.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.data.files import copy_contents, sha256_of
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import raise_if_stop_requested

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILE, _EXECUTABLE = 0o644, 0o755
_LEFT_OUT = "__pycache__"


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """Make a directory for the block, with those above it; a failure leaves none.

    Raises:
        UsageError: if it exists already, or cannot be made.
        ReBenchError: if a file in it cannot be written.
    """
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{directory}: {error.strerror}; give a directory that does not exist yet") from None
    try:
        yield directory
        set_modes(directory)
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise ReBenchError(f"{directory}: the export cannot be written: {error}") from None
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


def write_text(path: Path, text: str, *, executable: bool = False) -> None:
    """Write a text file as UTF-8 with Unix line ends; the directories above it are made.

    Raises:
        OSError: if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(_EXECUTABLE if executable else _FILE)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; what its owner may execute stays executable. The directories above it are made.

    Raises:
        OSError: if that fails.
    """
    raise_if_stop_requested()
    target.parent.mkdir(parents=True, exist_ok=True)
    copy_contents(source, target)
    target.chmod(_mode_of(source))


def copy_tree(source: Path, target: Path) -> None:
    """Copy all files below a directory, but for compiled Python, into another, in the order of their names.

    Raises:
        OSError: if that fails.
        ReBenchError: if there is a link or something else that is no file: it would mean something else elsewhere.
    """
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        if _LEFT_OUT in path.relative_to(source).parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file():
            raise ReBenchError(f"{path}: only files and directories can be exported; replace it by a file")
        copy_file(path, target / path.relative_to(source))


def set_modes(directory: Path) -> None:
    """Give everything below a directory, and itself, the mode of an export.

    Raises:
        OSError: if that fails.
    """
    for path in (directory, *directory.rglob("*")):
        path.chmod(_EXECUTABLE if path.is_dir() else _mode_of(path))


def digest_of(directory: Path) -> str:
    """Return the SHA-256, in hex digits, of the names, modes and contents of all files below a directory."""
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            name, mode = path.relative_to(directory).as_posix(), stat.S_IMODE(path.stat().st_mode)
            digest.update(f"{os.fsencode(name).hex()} {mode:o} {sha256_of(path)}\n".encode())
    return digest.hexdigest()


def _mode_of(path: Path) -> int:
    return _EXECUTABLE if path.stat().st_mode & stat.S_IXUSR else _FILE
