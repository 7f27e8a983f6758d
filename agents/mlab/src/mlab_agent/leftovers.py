"""What a killed run has left running: scripts that no sandbox has ended with it."""

from __future__ import annotations

import contextlib
import os
import signal

__all__ = ["end_leftovers", "mark_children"]

_MARK = "MLAB_AGENT_RUN"


def mark_children(run: str) -> None:
    """Give all processes that are started from now on the name of the run."""
    os.environ[_MARK] = run


def end_leftovers(run: str) -> int:
    """Kill the processes of a run that an earlier process of it has started; return how many there were."""
    wanted = f"{_MARK}={run}".encode()
    found = [pid for pid in _processes() if wanted in _variables(pid)]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(found)


def _processes() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208
    return []


def _variables(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - many, quickly
        return file.read().split(b"\0")
    return []
