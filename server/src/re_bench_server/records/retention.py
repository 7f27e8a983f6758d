"""Which directories of ended sessions are removed, by age and by size."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench_server.records.session_files import SessionFiles
from re_bench_server.state_dir import remove_tree

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_DAY_S = 86400.0
_GIB = 1 << 30
_BLOCK = 512  # of st_blocks, whatever the file system's are


@dataclass(frozen=True)
class Removed:
    """A directory that was removed."""

    name: str
    days: float
    """How long ago the session ended."""
    size: int
    """What it held, in bytes of the disk."""


def remove_old(
    sessions: Path, *, keep_days: float | None, keep_gib: float | None, in_use: Collection[str] = ()
) -> list[Removed]:
    """Remove directories of ended sessions, the oldest first, and return those that were removed.

    A session without an end in its ``session.json``, open or suspended, is never removed.

    Args:
        sessions: the directory with a directory for each session.
        keep_days: days after its end that a session is kept; None is without limit.
        keep_gib: what ended sessions may hold together, in GiB; None is without limit.
        in_use: names of sessions that are open, whatever their files say.
    """
    if keep_days is None and keep_gib is None:
        return []
    ended = _ended(sessions, in_use)
    total = sum(one.size for one in ended)
    removed = []
    for one in ended:
        too_old = keep_days is not None and one.days > keep_days
        if not too_old and (keep_gib is None or total <= keep_gib * _GIB):
            continue
        remove_tree(sessions / one.name)
        if not (sessions / one.name).exists():
            removed.append(one)
            total -= one.size
    return removed


def _ended(sessions: Path, in_use: Collection[str]) -> list[Removed]:
    """Return the ended sessions, the oldest first."""
    results = []
    for path in sessions.iterdir():
        ended = None if path.name in in_use else SessionFiles(path).ended()
        if ended is not None:
            results.append(Removed(path.name, (time.time() - ended.timestamp()) / _DAY_S, _size(path)))
    return sorted(results, key=lambda one: one.days, reverse=True)


def _size(directory: Path) -> int:
    """Return what a directory takes on the disk; what goes away meanwhile counts for nothing."""
    total = 0
    for parent, _directories, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * _BLOCK  # noqa: PTH118 - a million files
            except OSError:
                continue
    return total
