"""The last validation of each task and profile on this machine, in the state directory, and what has changed since."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field

from re_bench.data.cache import state_directory
from re_bench.data.provenance import hardware, versions
from re_bench.errors import ReBenchError
from re_bench.processes import print_progress
from re_bench.records import Record
from re_bench.runs.validation import SUBMISSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench.runs.validation import Report, Row
    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Tolerance

_DIRECTORY = "validations"
_SLOWER = 1.5
_SHORTEST_S = 2.0
"""Times that differ by less are not compared: a machine that does something else for a moment explains them."""
_SPREADS = 2.0
"""Standard deviations of a difference that chance explains."""
_LOCK_TIMEOUT_S = 10.0


class PastSolution(BaseModel):
    """How a solution came out."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    status: str
    """Of its scorings, each once: ``valid``, or ``valid/invalid``."""
    reward: float | None
    spread: float | None
    """The standard deviation of the reward over the scorings."""
    holds: bool
    seconds: float = Field(ge=0)
    """Of one scoring, on average, with the making of the solution."""

    @classmethod
    def of(cls, row: Row) -> Self:
        """Return what is kept of a row."""
        seconds = round(math.fsum(row.elapsed) / max(1, len(row.elapsed)), 3)
        return cls(status=row.status, reward=row.reward, spread=row.spread, holds=row.holds, seconds=seconds)


class ValidationRecord(Record):
    """What is kept of a validation, in the directory of its task and profile."""

    task: str
    profile: str
    time: str
    """When it ended, in ISO 8601."""
    seconds: float = Field(ge=0)
    """What it took, from its beginning to its end."""
    conditions: dict[str, str]
    """What times and rewards depend on: the hardware, the sandbox, the task's version, versions of packages."""
    digest: str
    """Of the conditions: the beginning of the SHA-256 of their JSON."""
    solutions: dict[str, PastSolution]
    """By name."""

    @classmethod
    def file_name(cls) -> str:
        """Return the name of the file."""
        return "validation.json"

    @classmethod
    def of(cls, task: Task, report: Report) -> Self:
        """Return the record of a validation that has just ended here; a submission beside ours is left out."""
        conditions = _conditions(task, report)
        text = json.dumps(conditions, sort_keys=True)
        return cls(
            task=report.task,
            profile=report.profile,
            time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            seconds=round(report.seconds, 3),
            conditions=conditions,
            digest=hashlib.sha256(text.encode()).hexdigest()[:16],
            solutions={row.variant: PastSolution.of(row) for row in report.rows if row.variant != SUBMISSION},
        )


def _conditions(task: Task, report: Report) -> dict[str, str]:
    scores = [score for row in report.rows for score in row.scores]
    devices = [device for score in scores if isinstance(device := score.details.get("hardware"), str)]
    sandboxes = "/".join(sorted({score.sandbox for score in scores if score.sandbox}))
    told = {"hardware": devices[0] if devices else hardware(), "sandbox": sandboxes}
    return {**told, "task version": str(task.manifest.version), **versions()}


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was."""

    solution: str
    """Its name; nothing where a condition has changed."""
    what: str
    """``verdict``, ``status``, ``reward``, ``seconds``, ``new``, ``gone``, or the name of a condition."""
    before: float | str | None
    after: float | str | None


@dataclass(frozen=True)
class Comparison:
    """A validation beside the one before it."""

    now: ValidationRecord
    before: ValidationRecord | None
    """None: it is the first, or the record cannot be read."""
    changes: list[Change]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        about = self.now.model_dump(mode="json", exclude={"solutions", "v"})
        before = self.before and self.before.model_dump(mode="json", exclude={"solutions", "v", "task", "profile"})
        return {**about, "previous": before, "changes": [asdict(change) for change in self.changes]}


def compare_and_keep(task: Task, report: Report, before: ValidationRecord | None) -> Comparison:
    """Compare a validation that has just ended here with the one before, and keep it in that one's place."""
    now = ValidationRecord.of(task, report)
    keep(now)
    tolerance = task.profile(report.profile).tolerance
    return Comparison(now, before, list(changes(before, now, tolerance)) if before else [])


def last_validation(task: str, profile: str) -> ValidationRecord | None:
    """Return the record of the last validation here; None if there is none, or none that can be read, which is told."""
    try:
        directory = _directory(task, profile)
        return ValidationRecord.load(directory) if (directory / ValidationRecord.file_name()).exists() else None
    except (ReBenchError, OSError, RuntimeError) as error:
        print_progress(f"re-bench: not compared with the last validation: {error}")
        return None


def keep(record: ValidationRecord) -> None:
    """Put a record in the place of the last one; where that fails, a line says so."""
    try:
        directory = _directory(record.task, record.profile)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(directory / ".lock", timeout=_LOCK_TIMEOUT_S):
            record.save(directory)
    except (OSError, RuntimeError) as error:  # also when the lock is not to be had
        print_progress(f"re-bench: not kept for the next validation: {error}; XDG_STATE_HOME says where to keep it")


def _directory(task: str, profile: str) -> Path:
    return state_directory() / _DIRECTORY / task / profile


def changes(before: ValidationRecord, now: ValidationRecord, tolerance: Tolerance) -> Iterator[Change]:
    """Yield what differs between two validations of a task.

    A reward does if the difference is more than the profile's tolerance and more than twice its standard deviation; a
    time if one is more than 1.5 times the other, and more than 2 s apart.
    """
    for name in {**before.conditions, **now.conditions}:
        then, today = before.conditions.get(name), now.conditions.get(name)
        if then != today:
            yield Change("", name, then, today)
    for name in {**before.solutions, **now.solutions}:
        reward = tolerance.reference if name == "reference" else tolerance.baseline
        yield from _of_solution(name, before.solutions.get(name), now.solutions.get(name), reward)


def _of_solution(name: str, before: PastSolution | None, now: PastSolution | None, reward: float) -> Iterator[Change]:
    if before is None or now is None:
        then, today = (one.status if one else None for one in (before, now))
        yield Change(name, "new" if before is None else "gone", then, today)
        return
    if before.holds != now.holds:
        yield Change(name, "verdict", *("ok" if one.holds else "FAILED" for one in (before, now)))
    if before.status != now.status:
        yield Change(name, "status", before.status, now.status)
    elif _is_other_reward(before, now, reward):
        yield Change(name, "reward", before.reward, now.reward)
    short, long = sorted((before.seconds, now.seconds))
    if long > _SLOWER * short and long - short > _SHORTEST_S:
        yield Change(name, "seconds", before.seconds, now.seconds)


def _is_other_reward(before: PastSolution, now: PastSolution, tolerance: float) -> bool:
    if before.reward is None or now.reward is None:
        return before.reward is not now.reward
    by_chance = _SPREADS * math.hypot(before.spread or 0.0, now.spread or 0.0)
    return abs(now.reward - before.reward) > max(tolerance, by_chance)
