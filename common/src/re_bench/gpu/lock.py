"""One job at a time on a GPU that is being timed, by a lock that says who holds it.

The lock is flock(2) on a file that all users of the machine share, so the kernel frees it however
its holder ends. The text in the file only tells those who wait whom they wait for. Any user can
write that text and take the lock: it keeps honest jobs apart, and protects from nobody. Containers
with a ``/tmp`` of their own do not see it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import pwd
import re
import stat
import sys
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["exclusive"]

_SHARED = Path("/tmp")  # noqa: S108 - not $TMPDIR, which differs between users and between jobs of a cluster
_POLL_S = 0.2
_MODE = 0o666
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_TEXT_BYTES = 4096
_PIDS = 1 << 22  # PID_MAX_LIMIT of Linux
_CAPS = {"user": 32, "since": 32, "host": 64, "what": 200}
_LOOKS = 5


@contextmanager
def exclusive(uuid: str, what: str, *, wait_s: float = 600, directory: Path | None = None) -> Iterator[None]:
    """Hold the GPU ``uuid`` for the length of a ``with`` block; wait while another job holds it.

    A thread that holds a GPU and asks for it again waits for itself.

    Args:
        uuid: the GPU's name for life, as :attr:`re_bench.gpu.state.Gpu.uuid`.
        what: what the GPU is held for, a few words; whoever waits reads them.
        wait_s: seconds to wait at most; 0 tries once.
        directory: where the lock files lie, in place of ``/tmp``.

    Raises:
        ReBenchError: if it is still held after ``wait_s``, or the lock file cannot be used.
    """
    waiting = _Waiting(uuid, _path(uuid, directory or _SHARED), wait_s)
    descriptor = waiting.locked()
    try:
        _write(descriptor, _text(what))
        yield
    finally:
        _write(descriptor, b"")
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing would leave it to a child that was forked meanwhile
        os.close(descriptor)


class _Waiting:
    """The way to one lock: waits, says so once, gives up in time."""

    def __init__(self, uuid: str, path: Path, wait_s: float) -> None:
        self._uuid, self._path, self._wait_s = uuid, path, wait_s
        self._deadline = time.monotonic() + wait_s
        self._failures = 0

    def locked(self) -> int:
        """Return a descriptor that holds the lock."""
        while True:
            descriptor = _open(self._path)
            try:
                self._lock(descriptor)
                if _is_at(self._path, descriptor):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # somebody cleaned up the directory: those who come now lock a newer file

    def _lock(self, descriptor: int) -> None:
        while not _try_lock(descriptor, self._path):
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise ReBenchError(self._gave_up(_holder(descriptor)))
            self._failures += 1
            if self._failures == 2:  # noqa: PLR2004 - by now a new holder has replaced what a dead one left
                print(f"waiting for the GPU: {_holder(descriptor)}", file=sys.stderr, flush=True)
            time.sleep(min(_POLL_S, left))

    def _gave_up(self, holder: str) -> str:
        todo = "wait for that job to end, or stop it, and try again"
        return f"the GPU {self._uuid} is not free after {self._wait_s:g} s: {holder}; {todo} (the lock: {self._path})"


def _path(uuid: str, directory: Path) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,80}", uuid):
        raise ReBenchError(f"{uuid!r} is no UUID of a GPU; it should look like GPU-4b0c5a1e-…")
    return directory / f"re-bench-gpu-{uuid}.lock"


def _open(path: Path) -> int:
    """Open the lock, made first if need be.

    In a directory with the sticky bit, Linux may refuse O_CREAT on a file of another user's
    (fs.protected_regular), so O_CREAT is for new files alone.
    """
    for _ in range(_LOOKS):
        try:
            return _checked(path, os.open(path, _FLAGS))
        except FileNotFoundError:
            with suppress(FileExistsError):
                return _new(path)
        except PermissionError:  # perhaps its maker is about to open it to all
            time.sleep(_POLL_S)
        except OSError as error:
            link = "it is a symbolic link; remove it"
            raise _unusable(path, link if error.errno == errno.ELOOP else str(error.strerror)) from None
    raise _unusable(path, f"its owner keeps it to himself; he should type: chmod {_MODE:o} {path}")


def _checked(path: Path, descriptor: int) -> int:
    """Return the descriptor of a plain file; a second name would be a trap, what we write would land elsewhere."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise _unusable(path, "it is not a plain file with one name; remove it")


def _new(path: Path) -> int:
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        raise
    except OSError as error:
        raise _unusable(path, f"it cannot be made ({error.strerror})") from None
    os.fchmod(descriptor, _MODE)  # whatever the umask
    return descriptor


def _unusable(path: Path, why: str) -> ReBenchError:
    return ReBenchError(f"the GPU's lock {path} cannot be used: {why}")


def _try_lock(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _unusable(path, f"it cannot be locked ({error.strerror})") from None
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    return False


def _text(what: str) -> bytes:
    """Return one line of JSON that says who we are."""
    holder = {
        "pid": os.getpid(),
        "user": _user(),
        "what": _plain(what, "what"),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
    }
    return json.dumps(holder).encode() + b"\n"


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _write(descriptor: int, text: bytes) -> None:
    with suppress(OSError):  # a full disk costs those who wait the name of the holder, nothing more
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text, 0)


def _holder(descriptor: int) -> str:
    """Say who holds the lock; the text is another user's and may be anything."""
    try:
        holder = json.loads(os.pread(descriptor, _TEXT_BYTES, 0))
        user, since, host, what = (_plain(holder[key], key) for key in _CAPS)
        pid = holder["pid"] if type(holder["pid"]) is int and 0 < holder["pid"] < _PIDS else "?"
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return "held by an unknown process"
    return f"held by pid {pid} ({user} on {host}) since {since}: {what}"


def _plain(text: Any, key: str) -> str:
    if not isinstance(text, str):
        raise TypeError(key)
    return "".join(char if char.isprintable() else "?" for char in text[: _CAPS[key]])
