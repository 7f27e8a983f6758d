"""The runs and tasks of a report: their records, the attempts of their logs, and what counts of them."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.normalise import normalise
from re_bench.records import RunRecord, TaskRecord
from re_bench.runs.attempts import AttemptLog, anchors_of
from re_bench.runs.elapsed import seconds_since_1970
from re_bench.tables import number
from re_bench.task.discovery import find_tasks
from re_bench_evaluation.report.data import AnchorsInfo, AttemptInfo, Flag, Problem, RunInfo, TaskInfo
from re_bench_evaluation.report.text import (
    as_finite,
    as_string,
    bounded,
    plain_json,
    shortened,
    sum_of_known,
    valid_unicode,
)
from re_bench_evaluation.working_time import attempt_times, read_waits, session_periods

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from re_bench.runs.attempts import Attempt
    from re_bench.runs.elapsed import Elapsed
    from re_bench.task.discovery import Task
    from re_bench_evaluation.report.data import ValidationInfo
    from re_bench_evaluation.report.sources import RunFiles, Source

_AGENTS = {"server": "session", "log": "attempt log"}
"""What stands for the agent where nothing names one."""
_ENDED = ("finished", "ended")
_DETAILS = ("anchors", "instance")
"""What is used of an attempt's details."""
_LONGEST_MESSAGE = 1000
_LONGEST_NAME = 200
_SAME = 1e-9
_LEAST_WORKING = 0.5
_UNCHANGED = {"title"}
"""Fields of a task's record that do not make it another task."""
FinalScore = tuple[float, float | None]
"""A raw score and its reward."""


def read_runs(source: Source, book: TaskBook) -> Iterator[tuple[RunInfo, RunFiles]]:
    """Yield the runs of a source; what cannot be read of them becomes its problems.

    Args:
        source: whose ``info`` has its key.
        book: gets the tasks.
    """
    tasks = {(task.name, task.profile): task for task in source.record.tasks} if source.record else {}
    for files in source.runs:
        attempts, torn = _read_log(source, files)
        for record, own in _records(source, files, attempts):
            task = tasks.get((record.task, record.profile)) or tasks.get((record.task_id, record.profile))
            note = "" if task else "what is known of the task is from this machine, not from when the runs were made"
            task = task or book.installed(record.task, record.profile)
            if task is None:
                where = f"the task {record.task} with profile {record.profile} is not in the evaluation and not here"
                source.problem(files.path, f"{where}; its runs are left out")
                continue
            reader = _RunReader(source, files, record, task)
            yield reader.info(book.key(task, note), own, torn, book), files


def _read_log(source: Source, files: RunFiles) -> tuple[Sequence[Attempt], int]:
    """Return the attempts of a run's log, and how many of its lines are not whole."""
    attempts: Sequence[Attempt] = ()
    torn = 0
    if files.log:
        try:
            contents = AttemptLog(files.log).read()
        except OSError as error:
            source.problem(files.log, f"the attempt log cannot be read: {error.strerror or error}")
        else:
            attempts, torn = _cleaned(contents.attempts, files), contents.torn
        if torn:
            source.problem(files.log, f"{torn} line(s) of the attempt log are not whole, and not counted")
    if _lacks_attempts(files, attempts) and files.record:
        text = f"the run's record counts {files.record.attempts} attempts, its log has {len(attempts)}"
        source.problem(files.path, f"{text}, so it is in no mean")
    return attempts, torn


def _cleaned(attempts: Sequence[Attempt], files: RunFiles) -> list[Attempt]:
    """Return attempts on the clock of their run, without what a report cannot have: huge numbers, no Unicode."""
    periods = session_periods(files.session_directory) if files.session_directory else []
    waits = read_waits(files.waits) if files.waits else []
    times = attempt_times(attempts, periods, waits)
    return [_clean(attempt, time) for attempt, time in zip(attempts, times, strict=True)]


def _clean(attempt: Attempt, time: Elapsed | None) -> Attempt:
    return replace(
        attempt,
        time=valid_unicode(attempt.time),
        task=valid_unicode(attempt.task),
        profile=valid_unicode(attempt.profile),
        submission=valid_unicode(attempt.submission),
        wall_s=bounded(time.wall_s) if time else None,
        working_s=bounded(time.working_s) if time else None,
        seconds=bounded(attempt.seconds),
        raw=None if attempt.raw is None else bounded(attempt.raw),
        reward=None if attempt.reward is None else bounded(attempt.reward),
        final_raw=None if attempt.final_raw is None else bounded(attempt.final_raw),
        message=shortened(valid_unicode(attempt.message), _LONGEST_MESSAGE),
        details={name: attempt.details[name] for name in _DETAILS if name in attempt.details},
    )


def _lacks_attempts(files: RunFiles, attempts: Sequence[Attempt]) -> bool:
    return files.record is not None and files.record.attempts > len(attempts)


def _records(
    source: Source, files: RunFiles, attempts: Sequence[Attempt]
) -> Iterator[tuple[RunRecord, Sequence[Attempt]]]:
    """Yield the record of a run with its attempts; of a plain log one for each task and profile in it."""
    if files.record:
        yield files.record, attempts
        return
    groups: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        groups[attempt.task, attempt.profile].append(attempt)
    session = files.session
    if not groups and session:
        groups[str(session.get("task")), str(session.get("profile"))] = []
    if len(groups) > 1:
        source.problem(files.path, f"the log is of {len(groups)} tasks or profiles; each counts as a run")
    for (task, profile), group in groups.items():
        yield _record_of_session(source, files, task, profile), group


def _record_of_session(source: Source, files: RunFiles, task: str, profile: str) -> RunRecord:
    """Return what is known of a run outside of an evaluation."""
    session = files.session
    used_s, waited_s = _amount(session.get("used_s")), _amount(session.get("waited_s"))
    over = not session or session.get("state") in _ENDED
    return RunRecord(
        run=valid_unicode(files.path.name),
        agent=_AGENTS.get(source.info.kind, source.info.kind),
        task=valid_unicode(task),
        task_id=as_string(session.get("task")) or task,
        profile=valid_unicode(profile),
        seed=0,
        state="ended" if over else "running",
        reason=as_string(session.get("reason")),
        began=as_string(session.get("opened")),
        ended=as_string(session.get("ended")),
        wall_s=None if used_s is None else used_s + (waited_s or 0.0),
        working_s=None if waited_s is None else used_s,
        dollars=None,
        task_dollars=sum_of_known(
            [_amount(session.get("model_dollars")), _amount(session.get("scoring_model_dollars"))]
        ),
    )


@dataclass(frozen=True)
class _RunReader:
    """Makes the data of one run."""

    source: Source
    files: RunFiles
    record: RunRecord
    task: TaskRecord

    def info(self, task: str, attempts: Sequence[Attempt], torn: int, book: TaskBook) -> RunInfo:
        """Return the run."""
        record, flags = self.record, []
        if not self.files.record and not self.files.session:
            attempts = _timed_from_the_first(attempts)
            flags.append(Flag("clock", "its times count from its first attempt: nothing says when it began"))
        flags += _much_waiting(record)
        scores = final_scores(attempts, self.task)
        raw, last = (scores[-1] if scores else None) or (None, None)
        counts = record.state == "ended" and not _lacks_attempts(self.files, attempts)
        if counts:
            self._compare(last)
        return RunInfo(
            key=f"{self.source.info.key}/{record.run}" + ("" if self.files.record else f"/{task}"),
            path=self.source.shown(self.files.path),
            evaluation=self.source.info.key,
            agent=record.agent,
            model=record.model,
            task=task,
            seed=record.seed if self.files.record else None,
            state=record.state,
            reason=record.reason,
            began=record.began,
            ended=record.ended,
            wall_s=record.wall_s,
            working_s=record.working_s,
            dollars=sum_of_known([record.dollars, record.earlier_dollars or None]),
            task_dollars=record.task_dollars,
            tokens=record.tokens,
            steps=record.steps,
            host=record.host,
            hardware=record.hardware,
            tries=record.tries,
            instances=_distinct(attempt.details.get("instance") for attempt in attempts),
            scorers=_distinct(attempt.scorer for attempt in attempts),
            sandboxes=_distinct(attempt.sandbox for attempt in attempts),
            raw=raw,
            reward=last,
            counted=max(0.0, last or 0.0) if counts else None,
            torn=torn,
            attempts=tuple(self._attempts(attempts, scores, book)),
            flags=tuple(flags),
        )

    def _attempts(
        self, attempts: Sequence[Attempt], scores: Sequence[FinalScore | None], book: TaskBook
    ) -> Iterator[AttemptInfo]:
        kept = self._kept()
        for attempt, final in zip(attempts, scores, strict=True):
            refused = attempt.status == "invalid"
            yield AttemptInfo(
                attempt.n,
                attempt.time,
                attempt.wall_s,
                attempt.working_s,
                attempt.seconds,
                attempt.status,
                attempt.raw,
                attempt.reward,
                attempt.final_raw,
                final[1] if final else None,
                attempt.message,
                attempt.submission,
                attempt.submission in kept,
                book.refused_as(self.task.name, self.task.profile, attempt.message) if refused else (),
            )

    def _kept(self) -> set[str]:
        log = self.files.log
        if log is None:
            return set()
        try:
            with os.scandir(log.with_name(f"{log.name}.submissions")) as entries:
                return {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        except OSError:
            return set()

    def _compare(self, reward: float | None) -> None:
        """Note where the record of a run that is over says something else than its log."""
        own = self.record.reward
        if self.files.record is None:
            return
        if (own is None) != (reward is None) or (own is not None and abs(own - (reward or 0.0)) > _SAME):
            self.source.problem(
                self.files.path,
                f"its record has the reward {number(own, 9)}, its log gives {number(reward, 9)}, "
                "which is what counts here",
            )


def final_scores(attempts: Sequence[Attempt], task: TaskRecord) -> list[FinalScore | None]:
    """Return for each attempt the final raw score and reward if the run had ended with it; None before a valid one.

    The last is that of :meth:`re_bench.runs.attempts.LogContents.final`.
    """
    anchors, best, scores = anchor_pair(task), None, []
    score: FinalScore | None = None
    for attempt in attempts:
        raw = attempt.raw_for_final
        if raw is not None and (best is None or _counts(raw, best, task.aggregation)):
            best = raw
            score = raw, _reward(attempt, anchors)
        scores.append(score)
    return scores


def _counts(raw: float, best: float, aggregation: str) -> bool:
    """Tell whether a later raw score counts instead of the one before."""
    return aggregation == "last" or (raw <= best if aggregation == "min" else raw >= best)


def _reward(attempt: Attempt, anchors: tuple[float, float] | None) -> float | None:
    if anchors is None:
        return attempt.reward
    raw = attempt.raw_for_final
    assert raw is not None
    try:
        return bounded(normalise(raw, *anchors_of(attempt, anchors)))
    except ValueError:
        return None  # a damaged log's anchors


def _much_waiting(record: RunRecord) -> Iterator[Flag]:
    """Yield that working time is much less than time by the clock, which an agent can bring about by what it writes."""
    if record.wall_s and record.working_s is not None and record.working_s < _LEAST_WORKING * record.wall_s:
        text = "more than half of a run was waiting for others, of which a part is its agent's word: compare both times"
        yield Flag("clock", text)


def _timed_from_the_first(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Give attempts of a plain log, which have no clock, the time since the first of them was handed in."""
    times = [seconds_since_1970(attempt.time) for attempt in attempts]
    if any(time is None for time in times) or any(attempt.wall_s is not None for attempt in attempts):
        return list(attempts)
    handed_in = [(time or 0.0) - attempt.seconds for time, attempt in zip(times, attempts, strict=True)]
    return [
        replace(attempt, wall_s=max(0.0, time - handed_in[0]))
        for attempt, time in zip(attempts, handed_in, strict=True)
    ]


def _distinct(values: Any) -> tuple[str, ...]:
    texts = {str(value) for value in values if value not in ("", None)}
    return tuple(sorted(shortened(valid_unicode(text), _LONGEST_NAME) for text in texts))


def _amount(value: object) -> float | None:
    """Return seconds or dollars of a record, of which many can be added up; None if it is no number."""
    number = as_finite(value)
    return None if number is None else max(0.0, bounded(number))


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
        content = record.model_dump_json(exclude=_UNCHANGED)
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
            flags.append(Flag("stand_in", f"a stand-in answers for the model {record.model}"))
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
