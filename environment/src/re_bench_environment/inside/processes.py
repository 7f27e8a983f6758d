"""The processes that can be seen from inside a sandbox, and which of them a command has begun."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Process", "begun", "below", "processes", "signal_all"]

_START = 18
"""Of the fields after the state in /proc/PID/stat, counted from 0; see proc(5)."""


class Process(NamedTuple):
    """What tells a process from others."""

    pid: int
    parent: int
    group: int
    session: int
    start: int
    """When it was started, in clock ticks; two processes with the same id differ in it."""


def processes() -> dict[int, Process]:
    """Return all processes that live, by id."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs every session memory
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                state, *fields = file.read().rpartition(b")")[2].split()
                if state not in {b"Z", b"X"}:
                    parent, group, session = map(int, fields[:3])
                    found[int(name)] = Process(int(name), parent, group, session, int(fields[_START]))
    return found


def below(root: int, now: Mapping[int, Process]) -> dict[int, Process]:
    """Return those of the processes that descend from ``root``."""
    return {pid: process for pid, process in now.items() if root in _ancestors(process, now)}


def begun(before: Mapping[int, Process], now: Mapping[int, Process], ours: Collection[int]) -> list[int]:
    """Return the processes that a command has begun, children of its children included.

    What processes from before the command begin meanwhile is not the command's: it is found by its ancestors, and where
    those are gone by process group and session.

    Args:
        before: all processes when the command began.
        now: all processes now.
        ours: the shell and what started it, whose children are the command's.
    """
    others = [process for pid, process in before.items() if pid not in ours]
    own = [before[pid] for pid in ours if pid in before]
    groups = {process.group for process in others} - {process.group for process in own}
    sessions = {process.session for process in others} - {process.session for process in own}
    old = {process.pid for process in others if _same(process, now)}
    return [
        pid
        for pid, process in now.items()
        if not _same(before.get(pid), now)
        and pid not in ours
        and process.group not in groups
        and process.session not in sessions
        and old.isdisjoint(_ancestors(process, now))
    ]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes, some of which may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _same(process: Process | None, now: Mapping[int, Process]) -> bool:
    return process is not None and process.pid in now and now[process.pid].start == process.start


def _ancestors(process: Process, now: Mapping[int, Process]) -> set[int]:
    found: set[int] = set()
    parent = process.parent
    while parent in now and parent not in found and parent != 1:
        found.add(parent)
        parent = now[parent].parent
    return found
