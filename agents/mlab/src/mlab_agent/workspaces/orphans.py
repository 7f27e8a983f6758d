"""End the processes that a script leaves behind, also those that left its session and changed their environment.

While a script runs, this process is the one that adopts its orphans (``PR_SET_CHILD_SUBREAPER``), so that none gets out
of sight.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_PR_SET_CHILD_SUBREAPER = 36
_LIMIT_S = 10.0
_PAUSE_S = 0.002


class Orphans:
    """Adopts the orphans of what is started in the block.

    Other threads should start nothing meanwhile in sessions of its own.
    """

    def __enter__(self) -> Self:
        self._prctl(1)
        self._before = set(_children())
        return self

    def __exit__(self, *_: object) -> None:
        self._prctl(0)

    def end(self) -> bool:
        """Kill all orphans and what descends from them; return whether none is left after at most 10 seconds."""
        deadline = time.monotonic() + _LIMIT_S
        while orphans := list(self._orphans()):
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(os.getpgid(pid), signal.SIGKILL)  # no member can get away from it by a fork
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            waited = [_has_ended(pid) for pid in orphans]
            if time.monotonic() > deadline:
                return False
            if not any(waited):
                time.sleep(_PAUSE_S)
        return True

    def _orphans(self) -> Iterator[int]:
        """Yield our new children outside of our session, which no descendant of a script can join."""
        own = os.getsid(0)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                if pid not in self._before and os.getsid(pid) != own:
                    yield pid

    def _prctl(self, adopt: int) -> None:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, adopt, 0, 0, 0)


def _children() -> list[int]:
    """Return the processes whose parent is this one."""
    pids: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            pids += map(int, (thread / "children").read_text().split())
    return pids


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True
