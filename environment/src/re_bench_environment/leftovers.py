"""What a server that was killed has left behind: found by its directory for state, removed before the next starts."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from re_bench.errors import UsageError

__all__ = ["KEPT", "State", "clear", "remove_tree"]

KEPT = ("attempts.jsonl", "attempts.jsonl.submissions", "session.json", "scorer.log", "meter.log")
"""What of a session stays when it has ended, if it has attempts."""
_OWN = ("workspace", "experiments")
_PROGRAMS = ("bwrap", "python", "env")
_WAIT_S = 5.0
_SOCKETS = "sockets"


class State:
    """The directory in which a server keeps its sessions; one server at a time has it."""

    def __init__(self, directory: Path) -> None:
        """Take the directory and sweep it.

        Raises:
            UsageError: if it cannot be used, or another server has it.
        """
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.directory = directory.resolve()
            self.sessions.mkdir(mode=0o700, exist_ok=True)
            self.sessions.chmod(0o700)  # not the directory itself, which may be anything that somebody has named
            self._lock = (self.directory / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{directory}: another server keeps its sessions there; give another directory with --state"
            ) from None
        except OSError as error:
            raise UsageError(
                f"{directory}: cannot be used for sessions ({error.strerror}); give another one with --state"
            ) from None
        self.swept = self._sweep()
        # Paths of sockets must be short, which those in our own directory may not be.
        self.sockets = Path(tempfile.mkdtemp(prefix="re-bench-serve-"))
        (self.directory / _SOCKETS).write_text(str(self.sockets), encoding="utf-8")

    @property
    def sessions(self) -> Path:
        """Where each session has a directory."""
        return self.directory / "sessions"

    def close(self) -> None:
        """Give the directory up."""
        shutil.rmtree(self.sockets, ignore_errors=True)
        (self.directory / _SOCKETS).unlink(missing_ok=True)
        self._lock.close()

    def _sweep(self) -> list[str]:
        """Remove what sessions of a dead server have left, but for their logs; return the names of the sessions."""
        found = [path for path in sorted(self.sessions.iterdir()) if path.is_dir()]
        _end_processes({str(path / name) for path in found for name in _OWN})
        dead = [path for path in found if any((path / name).exists() for name in _OWN)]
        for path in found:
            clear(path)
        record = self.directory / _SOCKETS
        with suppress(OSError):
            sockets = Path(record.read_text(encoding="utf-8"))
            if sockets.name.startswith("re-bench-serve-") and sockets.stat().st_uid == record.stat().st_uid:
                shutil.rmtree(sockets, ignore_errors=True)
        return [path.name for path in dead]


def clear(session: Path) -> None:
    """Remove a session's directory, but for its log, the submissions in it, and what goes with them."""
    if (session / "attempts.jsonl").exists():
        half = (session / "attempts.jsonl.submissions").glob(".incoming-*")  # of a scorer that was killed
        for path in (*session.iterdir(), *half):
            if path.name not in KEPT:
                remove_tree(path)
    else:
        remove_tree(session)


def remove_tree(path: Path) -> None:
    """Remove a file, or a directory whose owner may have made parts of it unreadable."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():  # an ordinary user cannot look into directories of mode 0
        for place, _directories, _files in os.walk(path):
            for name in _directories:
                inner = Path(place, name)
                if not inner.is_symlink():
                    with suppress(OSError):
                        inner.chmod(stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)


def _end_processes(directories: set[str]) -> None:
    """Kill sandboxes, meters and scorers that were given one of the directories, and wait for their end."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    ours = [pid for pid in pids if pid != os.getpid() and _was_given(pid, directories)]
    for pid in ours:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _WAIT_S
    while any(_was_given(pid, directories) for pid in ours) and time.monotonic() < deadline:
        time.sleep(0.02)


def _was_given(pid: int, directories: set[str]) -> bool:
    """Tell whether one of the directories is an argument, in full, of a process that may be ours."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    program = os.fsdecode(words[0]).rpartition("/")[2]
    return program.startswith(_PROGRAMS) and not directories.isdisjoint(map(os.fsdecode, words[1:]))
