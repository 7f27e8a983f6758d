"""The state directory of a server: its lock, the sessions in it, and removing what a killed server left there."""

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

KEPT = ("attempts.jsonl", "attempts.jsonl.submissions", "session.json", "scorer.log", "meter.log", "network.jsonl")
"""The files of a session that stay when it has ended, if it has attempts."""
_REMOVED = ("workspace", "home", "experiments")
_PROGRAMS = ("bwrap", "python", "env")
_KILL_TIMEOUT_S = 5.0
_SOCKETS = "sockets"


class StateDirectory:
    """The directory in which a server keeps its sessions; one server at a time uses it."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory and sweep it.

        Raises:
            UsageError: if it cannot be used, or another server uses it.
        """
        self.path = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = directory.resolve()
            self.sessions.mkdir(mode=0o700, exist_ok=True)
            self.sessions.chmod(0o700)  # not the directory itself, which may be anything that somebody has named
            self._lock = (self.path / "lock").open("w")
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
        (self.path / _SOCKETS).write_text(str(self.sockets), encoding="utf-8")

    @property
    def sessions(self) -> Path:
        """The directory that holds a directory for each session."""
        return self.path / "sessions"

    def close(self) -> None:
        """Release the directory."""
        shutil.rmtree(self.sockets, ignore_errors=True)
        (self.path / _SOCKETS).unlink(missing_ok=True)
        self._lock.close()

    def _sweep(self) -> list[str]:
        """Remove what sessions of a dead server left, except their logs; return the names of the sessions."""
        sessions = [path for path in sorted(self.sessions.iterdir()) if path.is_dir()]
        _kill_processes({str(path / name) for path in sessions for name in _REMOVED})
        orphaned = [path for path in sessions if any((path / name).exists() for name in _REMOVED)]
        for path in sessions:
            clear(path)
        record = self.path / _SOCKETS
        with suppress(OSError):
            sockets = Path(record.read_text(encoding="utf-8"))
            if sockets.name.startswith("re-bench-serve-") and sockets.stat().st_uid == record.stat().st_uid:
                shutil.rmtree(sockets, ignore_errors=True)
        return [path.name for path in orphaned]


def clear(session: Path) -> None:
    """Remove a session's directory, except its log, the scored copies, and the files that go with them."""
    if (session / "attempts.jsonl").exists():
        partial = (session / "attempts.jsonl.submissions").glob(".incoming-*")  # of a scorer that was killed
        for path in (*session.iterdir(), *partial):
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
        for parent, directories, _files in os.walk(path):
            for name in directories:
                inner = Path(parent, name)
                if not inner.is_symlink():
                    with suppress(OSError):
                        inner.chmod(stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)


def _kill_processes(directories: set[str]) -> None:
    """Kill sandboxes, meters and scorers that have one of the directories as argument, and wait for their end."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    orphans = [pid for pid in pids if pid != os.getpid() and _has_argument(pid, directories)]
    for pid in orphans:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while any(_has_argument(pid, directories) for pid in orphans) and time.monotonic() < deadline:
        time.sleep(0.02)


def _has_argument(pid: int, directories: set[str]) -> bool:
    """Tell whether one of the directories is a whole argument of a process that may be ours."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    program = os.fsdecode(words[0]).rpartition("/")[2]
    return program.startswith(_PROGRAMS) and not directories.isdisjoint(map(os.fsdecode, words[1:]))
