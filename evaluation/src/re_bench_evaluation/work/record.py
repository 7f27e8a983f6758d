"""Define the record of a person's work, ``session.json``: the fields of a server's session and of its clock.

The clock uses timestamps, without a process between commands. It follows the kernel's monotonic clock, which ignores
suspension and changes of the date. Across a reboot, the time from the last activity until the start is left out.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from re_bench.attempts.elapsed import Elapsed, Interval
from re_bench.records import SESSION, Record
from re_bench.untrusted_tree import walk

if TYPE_CHECKING:
    from collections.abc import Callable

WORKSPACE = "workspace"
"""In the directory of a person's work: the directory that is submitted."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Moment(BaseModel):
    """The clocks of a machine at one moment."""

    model_config = ConfigDict(frozen=True)

    unix_s: float
    """Seconds since 1970."""
    monotonic_s: float
    """Seconds since the machine's start, without suspension."""
    since_boot_s: float
    """Seconds since the machine's start."""
    boot: str
    """The kernel's boot id."""

    @classmethod
    def now(cls) -> Self:
        """Return the current moment."""
        return cls(
            unix_s=time.time(),
            monotonic_s=time.monotonic(),
            since_boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
            boot=_BOOT_ID.read_text(encoding="ascii").strip(),
        )


def worked(before: Moment, now: Moment, last_change: Callable[[], float]) -> tuple[float, Interval | None]:
    """Return the seconds of work between two moments, and when the machine was off.

    Args:
        before: the earlier moment.
        now: the later moment.
        last_change: returns the time of the last change in the workspace, in seconds since 1970; called after a reboot.
    """
    if now.boot == before.boot:
        return max(0.0, now.monotonic_s - before.monotonic_s), None
    started = now.unix_s - now.since_boot_s
    if started <= before.unix_s:  # on another machine
        return max(0.0, now.unix_s - before.unix_s), None
    off = Interval(min(max(before.unix_s, last_change()), started), started)
    return off.began - before.unix_s + now.monotonic_s, off


def last_change_in(directory: Path) -> float:
    """Return the time of the last change in a directory, in seconds since 1970; 0 if unknown."""
    latest = 0.0
    with suppress(OSError):
        for _descriptor, entries in walk(directory):
            for entry in entries:
                with suppress(FileNotFoundError):
                    latest = max(latest, entry.stat(follow_symlinks=False).st_mtime)
    return latest


class WorkRecord(Record):
    """The state of a person's work on a task."""

    name: str
    """The name of the session's directory."""
    task: str
    """The task's id."""
    task_directory: str
    profile: str
    client: str = ""
    opened: str
    """ISO 8601 in UTC, like ``ended``."""
    instance: int | str | None = None
    """The task instance; None if the task has none."""
    sandbox: str | None = None
    """The sandbox backend, if not the default."""
    chat_model: dict[str, Any] | None = None
    """The replacement for the task's chat model, if any."""
    hours: float
    state: Literal["open", "paused", "ended"] = "open"
    moment: Moment
    """When ``used_s`` was updated."""
    used_s: float = 0.0
    """Used working time."""
    waited_s: float = 0.0
    """Time in which scorings waited for the GPU; not in ``used_s``."""
    periods: list[list[float]] = Field(default_factory=list)
    """When the clock ran: pairs of start and end in seconds since 1970."""
    attempts: int = 0
    scored: int = 0
    """Number of used attempts: all except those whose scorer failed."""
    max_attempts: int
    final: dict[str, Any] | None = None
    ended: str | None = None
    reason: str | None = None

    @classmethod
    def file_name(cls) -> str:
        """Return the file name."""
        return SESSION

    @property
    def elapsed(self) -> Elapsed:
        """Elapsed time."""
        return Elapsed(self.used_s + self.waited_s, self.used_s)

    @property
    def remaining_s(self) -> float:
        """Remaining working time in seconds."""
        return max(0.0, self.hours * 3600 - self.used_s)

    @property
    def may_score(self) -> bool:
        """Whether hours and attempts are left."""
        return self.remaining_s > 0 and self.scored < self.max_attempts

    def changed(self, **fields: object) -> Self:
        """Return a copy with changed fields."""
        return self.model_copy(update=fields)

    def updated(self, workspace: Path) -> Self:
        """Return a copy with the time since the last update, while the clock runs."""
        now = Moment.now()
        seconds, off = worked(self.moment, now, lambda: last_change_in(workspace))
        *periods, (began, _ended) = self.periods
        if off is not None:
            periods, began = [*periods, [began, max(began, off.began)]], off.ended
        periods = [*periods, [began, max(began, now.unix_s)]]
        return self.changed(moment=now, used_s=self.used_s + seconds, periods=periods)
