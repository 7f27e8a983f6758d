"""The clock of a person's work: it goes on by timestamps, with no process running between commands.

While the machine is on, the kernel's monotonic clock counts: it stands still while a laptop is suspended, and no change
of the date moves it. Over a reboot, the time from the last sign of life until the machine was back is left out.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict

from re_bench.runs.elapsed import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Moment(BaseModel):
    """A moment by the clocks of a machine."""

    model_config = ConfigDict(frozen=True)

    unix_s: float
    """Seconds since 1970."""
    monotonic_s: float
    """Seconds since the machine's start, without those in which it was suspended."""
    since_boot_s: float
    """Seconds since the machine's start."""
    boot: str
    """The kernel's id of this start of this machine."""

    @classmethod
    def now(cls) -> Self:
        """Return the present moment."""
        return cls(
            unix_s=time.time(),
            monotonic_s=time.monotonic(),
            since_boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
            boot=_BOOT_ID.read_text(encoding="ascii").strip(),
        )


def off_between(before: Moment, now: Moment, last_change: Callable[[], float]) -> Interval | None:
    """Return when the machine was off between two moments, as far as can be told; None if it was not rebooted.

    Args:
        before: the earlier moment, at which the clock went.
        now: the later one.
        last_change: returns when something in the workspace was last changed, in seconds since 1970, which is a sign
            of life; asked for after a reboot alone.
    """
    started = now.unix_s - now.since_boot_s
    if now.boot == before.boot or started <= before.unix_s:  # the latter on another machine
        return None
    return Interval(min(max(before.unix_s, last_change()), started), started)


def worked_s(before: Moment, now: Moment, off: Interval | None) -> float:
    """Return how many seconds of work lie between two moments, between which the machine was ``off``."""
    if off is not None:
        return off.began - before.unix_s + now.monotonic_s
    if now.boot == before.boot:
        return max(0.0, now.monotonic_s - before.monotonic_s)
    return max(0.0, now.unix_s - before.unix_s)


def last_change_in(directory: Path) -> float:
    """Return when something in a directory was last changed, in seconds since 1970; 0 if nothing can be seen."""
    times = [0.0]
    for folder, _folders, files in os.walk(directory):
        for name in (".", *files):
            try:
                times.append(os.lstat(os.path.join(folder, name)).st_mtime)  # noqa: PTH118 - there may be many
            except OSError:
                continue
    return max(times)
