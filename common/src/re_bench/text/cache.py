"""Where prepared data lies, and writing into it so that readers see all of it or nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cache_directory", "new_directory", "only_one"]


def cache_directory() -> Path:
    """Return ``$RE_BENCH_CACHE``, or ``re-bench`` in the platform's cache of the user; it need not exist yet."""
    if chosen := os.environ.get("RE_BENCH_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "re-bench"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "re-bench"


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold the file ``lock``; whoever else asks for it waits. The system frees it when a process dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Give a directory to fill, which becomes ``target`` at the end, or vanishes if the filling fails.

    What was at ``target`` before is removed. Hold a lock: two writers of one target would disturb each other.
    """
    for abandoned in target.parent.glob(f".{target.name}-*"):  # by a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    filling = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield filling
        filling.chmod(0o755)
        shutil.rmtree(target, ignore_errors=True)
        filling.rename(target)
    finally:
        shutil.rmtree(filling, ignore_errors=True)
