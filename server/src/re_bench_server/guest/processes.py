"""The processes inside a sandbox: which of them a command has started, and services that are kept running."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
"""What commands get as every program does, whatever Python or a shell in the background does with it."""

_THREADS, _START_TIME = 16, 18
"""Of the fields after the state in /proc/PID/stat, counted from 0; see proc(5)."""
_READY_TIMEOUT_S = 10.0
_POLL_S = 0.005


class Process(NamedTuple):
    """What distinguishes a process from others."""

    pid: int
    parent: int
    group: int
    session: int
    threads: int
    start: int
    """When it was started, in clock ticks; two processes with the same id differ in it."""


def list_processes() -> dict[int, Process]:
    """Return all processes that are alive, by id."""
    processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs every session memory
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                state, *fields = file.read().rpartition(b")")[2].split()
                if state not in {b"Z", b"X"}:
                    parent, group, session = map(int, fields[:3])
                    processes[int(name)] = Process(
                        int(name), parent, group, session, int(fields[_THREADS]), int(fields[_START_TIME])
                    )
    return processes


def descendants(root: int, now: Mapping[int, Process]) -> dict[int, Process]:
    """Return those of the processes that descend from ``root``."""
    return {pid: process for pid, process in now.items() if root in _ancestors(process, now)}


def started_since(before: Mapping[int, Process], now: Mapping[int, Process], shell: Collection[int]) -> list[int]:
    """Return the processes that a command has started, descendants included.

    Processes that were there before the command may start others meanwhile, which are not the command's: they are
    recognised by their ancestors, and where those are gone by process group and session.

    Args:
        before: all processes when the command began.
        now: all processes now.
        shell: the shell and its ancestors, whose new children are the command's.
    """
    others = [process for pid, process in before.items() if pid not in shell]
    own = [before[pid] for pid in shell if pid in before]
    groups = {process.group for process in others} - {process.group for process in own}
    sessions = {process.session for process in others} - {process.session for process in own}
    old = {process.pid for process in others if _same(process, now)}
    return [
        pid
        for pid, process in now.items()
        if not _same(before.get(pid), now)
        and pid not in shell
        and process.group not in groups
        and process.session not in sessions
        and old.isdisjoint(_ancestors(process, now))
    ]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes, some of which may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_until_gone(remaining: Callable[[], Collection[int]], timeout_s: float = math.inf) -> None:
    """Kill the processes that ``remaining`` lists until it lists none, or the time is over.

    A killed process is there until it has run once more, and one may have started another meanwhile.
    """
    deadline = time.monotonic() + timeout_s
    while (pids := remaining()) and time.monotonic() < deadline:
        signal_all(pids, signal.SIGKILL)
        time.sleep(_POLL_S)


def _same(process: Process | None, now: Mapping[int, Process]) -> bool:
    return process is not None and process.pid in now and now[process.pid].start == process.start


def _ancestors(process: Process, now: Mapping[int, Process]) -> set[int]:
    ancestors: set[int] = set()
    parent = process.parent
    while parent in now and parent not in ancestors and parent != 1:
        ancestors.add(parent)
        parent = now[parent].parent
    return ancestors


class Service:
    """A program beside the shell that prints a line when it is ready, and is started again when it has ended."""

    def __init__(self, command: list[str]) -> None:
        """Describe the service that ``command`` runs; nothing is started yet."""
        self._command = command
        self._pid = 0
        self._output = -1

    def alive(self) -> bool:
        """Tell whether it runs."""
        if not self._pid:
            return False
        with suppress(ChildProcessError):
            if os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                return True
        os.close(self._output)
        self._pid = 0
        return False

    def start(self) -> None:
        """Start it and wait until it is ready, up to a time limit: its clients will see that it is not there.

        Raises:
            OSError: if it cannot be started.
        """
        # The output stays open and unread: what it prints later must not end it.
        self._output, stdout = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                self._command[0],
                self._command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, stdout, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(stdout)
        select.select([self._output], [], [], _READY_TIMEOUT_S)
