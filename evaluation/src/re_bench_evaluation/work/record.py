"""The record of a person's work, ``session.json``: the fields of a server's session, and those of its clock.

The clock goes on by timestamps, with no process running between commands. While the machine is on, the kernel's
monotonic clock counts: it stands still while a laptop is suspended, and no change of the date moves it. Over a reboot,
the time from the last sign of life until the machine was back is left out.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from re_bench.attempts.elapsed import Elapsed, Interval
from re_bench.records import SESSION, Record

if TYPE_CHECKING:
    from collections.abc import Callable

WORKSPACE = "workspace"
"""In the directory of a person's work: where the person works, and what is submitted."""
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


def worked(before: Moment, now: Moment, last_change: Callable[[], float]) -> tuple[float, Interval | None]:
    """Return how many seconds of work lie between two moments, and when the machine was off between them.

    Args:
        before: the earlier moment, at which the clock went.
        now: the later one.
        last_change: returns when something in the workspace was last changed, in seconds since 1970, which is a sign
            of life; asked for only after a reboot.
    """
    if now.boot == before.boot:
        return max(0.0, now.monotonic_s - before.monotonic_s), None
    started = now.unix_s - now.since_boot_s
    if started <= before.unix_s:  # on another machine
        return max(0.0, now.unix_s - before.unix_s), None
    off = Interval(min(max(before.unix_s, last_change()), started), started)
    return off.began - before.unix_s + now.monotonic_s, off


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


class WorkRecord(Record):
    """What is known of a person's work at a task."""

    name: str
    """Of the session's directory."""
    task: str
    """The task's id."""
    task_directory: str
    profile: str
    client: str = ""
    opened: str
    """ISO 8601 in UTC, as ``ended``."""
    instance: int | str | None = None
    """By which attempts are scored; None where the task has none."""
    sandbox: str | None = None
    """Of scorings, if not the default."""
    chat_model: dict[str, Any] | None = None
    """The task's chat model, if another one than the manifest's was chosen."""
    hours: float
    state: Literal["open", "paused", "ended"] = "open"
    moment: Moment
    """When ``used_s`` was last brought up to date."""
    used_s: float = 0.0
    """Seconds of the hours that are over: of working time."""
    waited_s: float = 0.0
    """What scorings waited for other jobs on the GPU; not in ``used_s``."""
    periods: list[list[float]] = Field(default_factory=list)
    """When the clock went: pairs of beginning and end in seconds since 1970."""
    attempts: int = 0
    scored: int = 0
    """How many of the attempts are used up: all but those whose scorer failed."""
    max_attempts: int
    final: dict[str, Any] | None = None
    ended: str | None = None
    reason: str | None = None

    @classmethod
    def file_name(cls) -> str:
        """Return the name of the file."""
        return SESSION

    @property
    def elapsed(self) -> Elapsed:
        """How much time is over."""
        return Elapsed(self.used_s + self.waited_s, self.used_s)

    @property
    def remaining_s(self) -> float:
        """What is left of the hours, in seconds; 0 when they are over."""
        return max(0.0, self.hours * 3600 - self.used_s)

    @property
    def may_score(self) -> bool:
        """Whether hours and attempts are left."""
        return self.remaining_s > 0 and self.scored < self.max_attempts

    def changed(self, **fields: object) -> Self:
        """Return the record with other values of these fields."""
        return self.model_copy(update=fields)

    def brought_up_to_date(self, workspace: Path) -> Self:
        """Return the record with what has passed since it was written, while the clock went."""
        now = Moment.now()
        seconds, off = worked(self.moment, now, lambda: last_change_in(workspace))
        *periods, (began, _ended) = self.periods
        if off is not None:
            periods, began = [*periods, [began, max(began, off.began)]], off.ended
        periods = [*periods, [began, max(began, now.unix_s)]]
        return self.changed(moment=now, used_s=self.used_s + seconds, periods=periods)
