"""The state directory of a server: its lock, the sessions in it, and ending what a killed server left running."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from re_bench.data.files import remove_tree
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import all_processes, command_line, end_processes, tree
from re_bench.records import ATTEMPTS, SESSION, TRANSCRIPT
from re_bench_server.session_record import SessionRecord

END_REQUEST = "end-requested"
"""The file in a session's directory by which its operator asks the running server to end it."""
ENDED_BY_OPERATOR = "ended by the operator"
"""The reason of such an end."""
KEPT = (
    ATTEMPTS,
    f"{ATTEMPTS}.submissions",
    f"{ATTEMPTS}.records",
    SESSION,
    TRANSCRIPT,
    "scorer.log",
    "meter.log",
    "network.jsonl",
)
"""The files of a session that stay when it has ended."""
RESTORED = ("workspace", "home", "experiments")
"""What a session has besides while it is open, and a later server offers again."""
_PROGRAMS = ("bwrap", "python", "env", "setpriv")
_OUR_OPTIONS = {b"--die-with-parent", b"--new-session", b"--hostname", b"sandbox"}
_GRACE_S = 10.0
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
        self.open_records: list[SessionRecord] = []
        """The records of the sessions that a server before this one left open."""
        self.damaged: dict[str, str] = {}
        """Sessions that are not touched because their record cannot be used, and why."""
        self._sweep()
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

    def _sweep(self) -> None:
        """End what sessions of a dead server left running, and remove what none of them needs again."""
        directories = [path for path in sorted(self.sessions.iterdir()) if path.is_dir()]
        _end_processes({str(path / name) for path in directories for name in RESTORED})
        for path in directories:
            try:
                record = SessionRecord.load(path)
            except ReBenchError as error:
                if any((path / name).exists() for name in RESTORED):
                    self.damaged[path.name] = str(error)
                    continue
            else:
                if record.state == "open" and not (path / "workspace").is_dir():
                    self.damaged[path.name] = "it has no workspace"
                    continue
                if record.state != "ended":
                    self.open_records.append(record)
                    _remove_all_but(path, (*KEPT, *RESTORED))
                    continue
            clear(path)
        record_of_sockets = self.path / _SOCKETS
        with suppress(OSError):
            sockets = Path(record_of_sockets.read_text(encoding="utf-8"))
            if sockets.name.startswith("re-bench-serve-") and sockets.stat().st_uid == record_of_sockets.stat().st_uid:
                shutil.rmtree(sockets, ignore_errors=True)


def is_served(state: Path) -> bool:
    """Tell whether a server uses a state directory."""
    try:
        with (state / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def clear(session: Path) -> None:
    """Remove an ended session's files, except its record, its log, the scored copies, and what goes with them."""
    _remove_all_but(session, KEPT)
    with suppress(OSError):  # of a session that was never more than a directory
        session.rmdir()


def _remove_all_but(session: Path, kept: tuple[str, ...]) -> None:
    partial = session.glob(f"{ATTEMPTS}.*/.incoming-*")  # of a scorer that was killed
    for path in (*session.iterdir(), *partial):
        if path.name not in kept:
            remove_tree(path)


def _end_processes(directories: set[str]) -> None:
    """End sandboxes, meters and scorers that have one of the directories as argument, with all that they run."""
    pids = all_processes()
    for pid in filter(_is_half_started_sandbox, pids):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)  # as the first of its namespace it ignores others
    roots = [pid for pid in pids if pid != os.getpid() and _has_argument(pid, directories)]
    # They are ending already, since their server is gone, and clean up after themselves if they get the time.
    end_processes(
        {pid for root in roots for pid in tree(root)}, (signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _KILL_TIMEOUT_S)
    )


def _is_half_started_sandbox(pid: int) -> bool:
    """Tell whether a process is a bubblewrap that waits for its parent for ever, which was killed while it started it.

    Such a process is the first of its namespace, its parent is no bubblewrap, and it runs nothing.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[0].rpartition(b"/")[2] != b"bwrap" or not _OUR_OPTIONS.issubset(words):
            return False
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
        parent = Path(f"/proc/{status['PPid']}/comm").read_text("utf-8").strip()
        return status["NSpid"].split()[1:] == ["1"] and parent != "bwrap" and list(tree(pid)) == [pid]
    except (OSError, ValueError, KeyError):
        return False


def _has_argument(pid: int, directories: set[str]) -> bool:
    """Tell whether one of the directories is a whole argument of a process that may be ours."""
    words = command_line(pid)
    program = words[0].rpartition("/")[2] if words else ""
    return program.startswith(_PROGRAMS) and not directories.isdisjoint(words[1:])
