"""Where prepared data lies, writing into it so that readers see all of it or nothing, and checking it when reading."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["cache_directory", "check_files", "file_lock", "new_directory", "undamaged"]

_READ_ONLY = {errno.EROFS, errno.EACCES}


def cache_directory() -> Path:
    """Return ``$RE_BENCH_CACHE``, or ``re-bench`` in the platform's cache of the user; it need not exist yet."""
    if chosen := os.environ.get("RE_BENCH_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "re-bench"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "re-bench"


@contextmanager
def file_lock(lock: Path) -> Iterator[None]:
    """Hold the file ``lock``; whoever else asks for it waits. The system frees it when a process dies.

    Where nothing can be written, in a cache that is mounted read-only, nobody needs to wait, and nothing is held.
    """
    with ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("w"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Give a directory to fill, which becomes ``target`` at the end, or vanishes if the filling fails.

    What was at ``target`` before is removed. Hold a lock: two writers of one target would disturb each other.

    Raises:
        UsageError: if nothing can be written there.
    """
    for abandoned in target.parent.glob(f".{target.name}-*"):  # by a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    try:
        filling = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise UsageError(
            f"{target}: missing or damaged, and cannot be made there ({error.strerror}); set RE_BENCH_CACHE elsewhere"
        ) from None
    try:
        yield filling
        filling.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        filling.rename(target)
    finally:
        shutil.rmtree(filling, ignore_errors=True)


@contextmanager
def undamaged(directory: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong in reading a prepared directory into one line that says what to do.

    Raises:
        ReBenchError: for an unreadable file, or a manifest that is not as we write it.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReBenchError(f"{directory}: damaged ({type(error).__name__}: {error}); {remedy}") from None


def check_files(directory: Path, checksums: Mapping[str, str], remedy: str) -> None:
    """Compare files of a prepared directory with the SHA-256 that its manifest has for them.

    Raises:
        ReBenchError: if one differs.
    """
    for file, expected in checksums.items():
        if (found := sha256_of(directory / file)) != expected:
            raise ReBenchError(f"{directory / file}: SHA-256 {found}, its manifest says {expected}; {remedy}")
