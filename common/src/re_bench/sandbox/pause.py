"""Suspend and continue the processes of a sandbox."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from re_bench.errors import ReBenchError
from re_bench.processes import process_tree

_STOP_WITHIN_S = 10.0
_POLL_S = 0.002


def pause(root: int) -> set[int]:
    """Suspend a process and its descendants with SIGSTOP, including processes that start in the meantime.

    When this returns, none of them executes anything until :func:`resume`. Processes that were suspended before are not
    in the result, so that they stay suspended.

    Returns:
        The PIDs of the processes that this call has suspended.

    Raises:
        ReBenchError: if a process still runs after ten seconds.
    """
    paused: set[int] = set()
    started = time.monotonic()
    # A system call that cannot be interrupted ends soon, except vfork, which waits for a child that may be suspended.
    while running := {pid for pid in process_tree(root) if _runs(pid, paused, "RD" if _since(started) < 1 else "R")}:
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        paused |= running
        if _since(started) > _STOP_WITHIN_S:
            resume(paused)
            raise ReBenchError("the processes of the sandbox could not be suspended")
        time.sleep(_POLL_S)
    return paused


def resume(paused: set[int]) -> None:
    """Continue the processes that :func:`pause` has suspended, the most recent first.

    A shell that continued before its children could take them for stopped jobs.
    """
    for pid in sorted(paused, reverse=True):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _since(started: float) -> float:
    return time.monotonic() - started


def _runs(pid: int, paused: set[int], active: str) -> bool:
    """Return whether a process must be sent SIGSTOP or, if it is in ``paused``, has a thread in an ``active`` state.

    The states of all threads matter: a process whose first thread has exited looks like a zombie while the others run.
    """
    states = set()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                states.add((thread / "stat").read_bytes().rpartition(b")")[2].split()[0].decode())
    return not states.isdisjoint(active) if pid in paused else bool(states.difference("TtZX"))
