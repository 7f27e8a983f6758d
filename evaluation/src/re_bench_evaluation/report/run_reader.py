"""The runs of a source: their records, the attempts of their logs, and what counts of them."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from re_bench.normalise import normalise
from re_bench.records import RunRecord
from re_bench.runs.attempts import anchors_of
from re_bench.runs.elapsed import seconds_since_1970
from re_bench.tables import number
from re_bench_evaluation.report.attempt_index import IndexedLog
from re_bench_evaluation.report.run_data import AttemptInfo, RunInfo
from re_bench_evaluation.report.task_book import anchor_pair
from re_bench_evaluation.report.task_data import Flag
from re_bench_evaluation.report.text import as_finite, as_string, bounded, sum_of_known, valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from re_bench.records import TaskRecord
    from re_bench.runs.attempts import Attempt
    from re_bench_evaluation.report.sources import RunFiles, Source
    from re_bench_evaluation.report.task_book import TaskBook

_AGENTS = {"server": "session", "log": "attempt log"}
"""What stands for the agent where nothing names one."""
_ENDED = ("finished", "ended")
_SAME = 1e-9
_LEAST_WORKING = 0.5
FinalScore = tuple[float, float | None]
"""A raw score and its reward."""


def read_runs(source: Source, logs: Mapping[Path, IndexedLog], book: TaskBook) -> Iterator[tuple[RunInfo, RunFiles]]:
    """Yield the runs of a source; what cannot be read of them becomes its problems.

    Args:
        source: whose ``info`` has its key.
        logs: what the attempt logs say.
        book: gets the tasks.
    """
    tasks = {(task.name, task.profile): task for task in source.record.tasks} if source.record else {}
    for files in source.runs:
        log = _log(source, files, logs)
        for record, attempts in _records(source, files, log.attempts):
            task = tasks.get((record.task, record.profile)) or tasks.get((record.task_id, record.profile))
            note = "" if task else "what is known of the task is from this machine, not from when the runs were made"
            task = task or book.installed(record.task, record.profile)
            if task is None:
                where = f"the task {record.task} with profile {record.profile} is not in the evaluation and not here"
                source.problem(files.path, f"{where}; its runs are left out")
                continue
            reader = _RunReader(source, files, record, task)
            yield reader.info(book.key(task, note), attempts, log.torn, book), files


def _log(source: Source, files: RunFiles, logs: Mapping[Path, IndexedLog]) -> IndexedLog:
    log = logs[files.files.log] if files.files else IndexedLog()
    if files.files and log.problem:
        source.problem(files.files.log, f"the attempt log cannot be read: {log.problem}")
    if files.files and log.torn:
        source.problem(files.files.log, f"{log.torn} line(s) of the attempt log are not whole, and not counted")
    if _lacks_attempts(files, log.attempts) and files.record:
        text = f"the run's record counts {files.record.attempts} attempts, its log has {len(log.attempts)}"
        source.problem(files.path, f"{text}, so it is in no mean")
    return log


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
        if self.files.files is None:
            return set()
        log = self.files.files.log
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
    return tuple(sorted({str(value) for value in values if value not in ("", None)}))


def _amount(value: object) -> float | None:
    """Return seconds or dollars of a record, of which many can be added up; None if it is no number."""
    number = as_finite(value)
    return None if number is None else max(0.0, bounded(number))
