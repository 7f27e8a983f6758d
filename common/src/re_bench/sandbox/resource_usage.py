"""What a tree of processes uses of the machine, measured from outside: memory, and growth of directories on disk."""

from __future__ import annotations

import ctypes
import os
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.processes import tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from re_bench.limits import Limits

_PERIOD_S = 0.25
_PAUSE_FACTOR = 4  # measuring takes at most a fifth of the time, however many files there are

_MIB = 1 << 20
_BLOCK = 512  # the unit of st_blocks, whatever the file system's
_ENTRY = 4096  # what a file costs at least: it stops a million empty files too
_HELD = {"RssAnon", "RssShmem", "VmSwap"}
_SHARE = {"Pss_Anon", "Pss_Shmem", "SwapPss"}


@contextmanager
def seen_by(user: int | None) -> Iterator[None]:
    """Have this thread see of processes in ``/proc`` what ``user`` sees; None: what we see.

    Root without ``CAP_SYS_PTRACE``, as in most containers, may not look into processes of others.
    """
    if user is None:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsgid(user)
    libc.setfsuid(user)
    try:
        yield
    finally:
        libc.setfsuid(os.geteuid())
        libc.setfsgid(os.getegid())


def memory_violation(root: int, limits: Limits) -> str:
    """Return that the tree under ``root`` holds more memory, pages of files on disk apart, than it may; else ``""``.

    A page that several processes share counts once. To share it out takes a walk over the page
    tables, so that is done only where the sum of what each process holds is over the limit.
    """
    limit = limits.memory_mib * _MIB
    held = {pid: _proc_bytes(f"/proc/{pid}/status", _HELD) for pid in tree(root)}
    if sum(filter(None, held.values())) <= limit:
        return ""
    shares = {pid: _proc_bytes(f"/proc/{pid}/smaps_rollup", _SHARE) for pid in held}
    # Where shares cannot be read, what a process holds counts as a whole; nothing, if it has ended meanwhile.
    wholes = (_proc_bytes(f"/proc/{pid}/status", _HELD) or 0 for pid, share in shares.items() if share is None)
    over = sum(wholes) + sum(filter(None, shares.values())) > limit
    return f"it used more than {limits.memory_mib} MiB of memory" if over else ""


def cpu_seconds(root: int) -> float:
    """Return the processor time that the tree under ``root`` has used so far, ended children included."""
    return sum(_ticks(pid) for pid in tree(root)) / os.sysconf("SC_CLK_TCK")


class DiskGrowth:
    """How much directories grow while a program writes into them, measured a few times a second."""

    def __init__(self, directories: Iterable[Path], before: int | None = None, user: int | None = None) -> None:
        """Measure what is there.

        Args:
            directories: what to measure.
            before: from how many bytes growth counts, if not from what is there.
            user: the user whose processes write there, if it is not ours; as for :func:`seen_by`.
        """
        self._directories, self._user = list(directories), user
        self._devices: set[int] = set()
        self.before = before or 0
        """From how many bytes growth counts."""
        self._next = 0.0
        with suppress(OSError):  # which the first measurement reports
            self._devices = {path.stat().st_dev for path in self._directories}
            if before is None:
                self.before = disk(self._directories)

    def violation(self, root: int, limits: Limits) -> str:
        """Return that they have grown more than they may, as of the last measurement, or cannot be measured; or ``""``.

        Deleted files that the tree under ``root`` holds open count. What is written after that
        measurement shows in the next: a program's last files in :meth:`violation_at_end`.
        """
        started = time.monotonic()
        if not self._directories or started < self._next:
            return ""
        with seen_by(self._user):
            unnamed = _unnamed_files(root, self._devices)
        reason = self.violation_at_end(limits, unnamed)
        now = time.monotonic()
        self._next = now + max(_PERIOD_S, _PAUSE_FACTOR * (now - started))
        return reason

    def violation_at_end(self, limits: Limits, unnamed: int = 0) -> str:
        """Return the same of a program that has ended, as of now, with that many bytes of deleted files."""
        try:
            over = self.is_over_now(limits.disk_mib * _MIB - unnamed)
        except OSError as error:
            return f"its writable directories cannot be measured ({error.strerror})"
        return f"it wrote more than {limits.disk_mib} MiB into its writable directories" if over else ""

    def is_over_now(self, limit: int) -> bool:
        """Tell whether they have grown by more than ``limit`` bytes now; deleted files are left out.

        Raises:
            OSError: if a part cannot be read.
        """
        return disk(self._directories) - self.before > limit


def disk(directories: Iterable[Path]) -> int:
    """Return the bytes that the files under ``directories`` take on disk, each at least one block.

    Raises:
        OSError: if a part cannot be read.
    """
    seen: dict[tuple[int, int], int] = {}
    waiting = list(map(str, directories))
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    seen[status.st_dev, status.st_ino] = max(status.st_blocks * _BLOCK, _ENTRY)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
    return sum(seen.values())


def _proc_bytes(path: str, keys: set[str]) -> int | None:
    """Return in bytes the sum of a /proc file's lines ``key: N kB``, or None if it cannot be read."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition(":")[::2] for line in lines)
    return sum(int(value.split()[0]) << 10 for key, value in pairs if key in keys)


def _ticks(pid: int) -> int:
    """Return the processor time of a process and its ended children in clock ticks, 0 if it has ended itself."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return sum(map(int, text.rpartition(")")[2].split()[11:15]))  # utime, stime, cutime, cstime of proc(5)
    return 0


def _unnamed_files(root: int, devices: set[int]) -> int:
    """Return the bytes of deleted files on ``devices`` that the tree under ``root`` still holds open."""
    seen: dict[tuple[int, int], int] = {}
    for pid in tree(root):
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    status = descriptor.stat()
                    if status.st_nlink == 0 and status.st_dev in devices:
                        seen[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return sum(seen.values())
