"""The tasks of a report: each in one profile and version, with one pair of anchors, so that rewards can be averaged."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.records import TaskRecord
from re_bench.task.discovery import find_tasks
from re_bench_evaluation.report.task_data import AnchorsInfo, Flag, Problem, TaskInfo
from re_bench_evaluation.report.text import as_finite, as_string, plain_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.task.discovery import Task
    from re_bench_evaluation.report.task_data import ValidationInfo

_UNCHANGED = ("title",)
"""Fields of a record that do not make it another task."""


class TaskBook:
    """Gives every task of the runs its key, and collects them."""

    def __init__(self, now: dt.datetime) -> None:
        self.problems: list[Problem] = []
        self._now = now
        self._infos: dict[str, TaskInfo] = {}
        self._keys: dict[str, str] = {}
        """By the content of the task's record."""

    def key(self, record: TaskRecord, note: str = "") -> str:
        """Return the key of a task, a new one for a record that differs from all before in what decides rewards.

        Args:
            record: what the runs' evaluation says of it.
            note: what the reader must know of where the record comes from.
        """
        content = record.model_dump_json(exclude=set(_UNCHANGED))
        if content not in self._keys:
            first = f"{record.name}/{record.profile}/v{record.version}"
            same = sum(key == first or key.startswith(f"{first}#") for key in self._infos)
            key = f"{first}#{same + 1}" if same else first
            self._keys[content] = key
            self._infos[key] = self._info(key, record, note)
        return self._keys[content]

    def installed(self, name: str, profile: str) -> TaskRecord | None:
        """Return the record of a task that is here now, by its name or id; None if it is not, or lacks the profile."""
        task = self.task(name)
        return TaskRecord.of(task, profile) if task and profile in task.manifest.profiles else None

    def task(self, name: str) -> Task | None:
        """Return a task that is here, by its name or id."""
        return next((task for task in self._here.values() if name in {task.name, task.manifest.id}), None)

    def infos(self, validations: Mapping[tuple[str, str], ValidationInfo]) -> list[TaskInfo]:
        """Return the tasks by key, with their validations, which are found by name and profile."""
        infos = (self._infos[key] for key in sorted(self._infos))
        return [replace(info, validation=validations.get((info.name, info.profile))) for info in infos]

    def refused_as(self, task: str, profile: str, message: str) -> tuple[str, ...]:
        """Return the checked-in cheats of a task that are refused with such a message; none if the task is not here."""
        return _matching(self._reasons(task, profile), message)

    @lru_cache  # noqa: B019 - a book lives as long as its report
    def _reasons(self, name: str, profile: str) -> tuple[tuple[str, str], ...]:
        task = self.task(name)
        return task.manifest.refusals(profile) if task else ()

    @cached_property
    def _here(self) -> dict[str, Task]:
        try:
            return find_tasks()
        except ReBenchError as error:
            self.problems.append(Problem("tasks", str(error)))
            return {}

    def _info(self, key: str, record: TaskRecord, note: str) -> TaskInfo:
        anchors = _anchors(record, self._now)
        flags = [Flag("no_anchors", note)] if note else []
        if record.modelled:
            flags.append(Flag("modelled", "the raw score is modelled, not measured"))
        if record.stand_in:
            flags.append(Flag("stand_in", f"a stand-in of ours answers for the model {record.model}"))
        if anchors and anchors.kind == "published":
            flags.append(Flag("published_anchors", f"the anchors are published ones: {anchors.where}"))
        if anchors is None:
            flags.append(Flag("no_anchors", "no anchors are stored: each scoring measures its own, or there are none"))
        return TaskInfo(
            key=key, name=record.name, id=record.id, title=record.title, profile=record.profile,
            version=record.version, direction=record.direction, aggregation=record.aggregation, unit=record.unit,
            anchors=anchors, modelled=record.modelled, model=record.model, stand_in=record.stand_in,
            flags=tuple(flags),
        )  # fmt: skip


def anchor_pair(record: TaskRecord) -> tuple[float, float] | None:
    """Return the starting and the reference score of a record; None where it has none that can be used."""
    values = record.anchors or {}
    starting, reference = as_finite(values.get("starting")), as_finite(values.get("reference"))
    return None if starting is None or reference is None or starting == reference else (starting, reference)


@lru_cache(maxsize=10_000)
def _matching(reasons: tuple[tuple[str, str], ...], message: str) -> tuple[str, ...]:
    return tuple(name for name, reason in reasons if re.search(reason, message))


def _anchors(record: TaskRecord, now: dt.datetime) -> AnchorsInfo | None:
    """Return what a record says of its anchors, of which no more than the two scores has to be there."""
    pair = anchor_pair(record)
    if pair is None or record.anchors is None:
        return None
    values = record.anchors
    source, date = _table(values.get("source")), as_string(_table(values.get("source")).get("date"))
    spread, repeats = _table(source.get("spread")), source.get("repeats")
    return AnchorsInfo(
        starting=pair[0],
        reference=pair[1],
        kind=as_string(source.get("kind")) or "",
        where=as_string(source.get("where")) or "",
        hardware=as_string(source.get("hardware")),
        model=as_string(source.get("model")),
        date=date,
        age_days=_age_days(date, now),
        repeats=repeats if isinstance(repeats, int) else None,
        starting_spread=as_finite(spread.get("starting")),
        reference_spread=as_finite(spread.get("reference")),
        versions={name: str(version) for name, version in plain_json(_table(source.get("versions"))).items()},
    )


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _age_days(date: str | None, now: dt.datetime) -> int | None:
    try:
        return (now.date() - dt.date.fromisoformat(date)).days if date else None
    except ValueError:
        return None
