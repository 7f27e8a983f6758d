"""The record of a person's work, ``session.json``: the fields of a server's session, and those of its clock."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from re_bench.records import SESSION, Record
from re_bench.runs.elapsed import Elapsed
from re_bench_evaluation.work.clock import Moment  # noqa: TC001 - pydantic reads it

WORKSPACE = "workspace"
"""In the directory of a person's work: where the person works, and what is submitted."""

State = Literal["open", "paused", "ended"]


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
    state: State = "open"
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
    """How many of the attempts are used up: all but those that failed by a fault of ours."""
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
