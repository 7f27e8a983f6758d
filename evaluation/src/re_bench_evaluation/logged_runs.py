"""The runs of an evaluation with their attempts and kept submissions, for what examines results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.attempts.log import AttemptLog, LogContents
from re_bench.attempts.store import Store
from re_bench.errors import ReBenchError
from re_bench.records import EvaluationRecord, RunRecord, run_directories
from re_bench.task.discovery import task_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.attempts.log import Attempt
    from re_bench.records import TaskRecord
    from re_bench.task.discovery import TaskFolder

_MAX_DEPTH = 64


@dataclass(frozen=True)
class LoggedRun:
    """A run of an evaluation."""

    directory: Path
    record: RunRecord
    task_record: TaskRecord | None
    """None if the evaluation has no such task."""

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.name

    @cached_property
    def log(self) -> Path | None:
        """Its attempt log."""
        return self.record.attempt_log(self.directory)

    @cached_property
    def contents(self) -> LogContents:
        """What its log holds; nothing if it cannot be read."""
        try:
            return AttemptLog(self.log).read() if self.log is not None else LogContents((), 0)
        except OSError:
            return LogContents((), 0)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Its attempts, in order."""
        return self.contents.attempts

    @cached_property
    def task(self) -> TaskFolder | None:
        """The task as it is here, of the same version; None if it is not here."""
        task = task_here(self.task_record.name) if self.task_record is not None else None
        same = task is not None and self.task_record is not None and task.manifest.version == self.task_record.version
        return task if same else None

    def submission(self, attempt: Attempt) -> Path | None:
        """Return the kept copy of what was scored, if there is one."""
        return Store(self.log).find(attempt.submission) if self.log is not None else None

    def new_submissions(self) -> Iterator[tuple[Attempt, Path]]:
        """Yield each kept submission with the first attempt at it."""
        seen = set()
        for attempt in self.attempts:
            copy = None if attempt.submission in seen else self.submission(attempt)
            seen.add(attempt.submission)
            if copy is not None:
                yield attempt, copy


@dataclass(frozen=True)
class LoggedEvaluation:
    """An evaluation whose results are examined."""

    record: EvaluationRecord
    runs: tuple[LoggedRun, ...]
    damaged: tuple[str, ...]
    """Runs whose record cannot be read, and why."""


def read_evaluation(directory: Path) -> LoggedEvaluation:
    """Read what there is of an evaluation.

    Raises:
        ReBenchError: if the evaluation's own record is damaged, or there is none.
    """
    record = EvaluationRecord.load(directory)
    tasks = {task.name: task for task in record.tasks}
    runs, damaged = [], []
    for path in run_directories(directory):
        try:
            run = RunRecord.load(path)
        except ReBenchError as error:
            damaged.append(str(error))
            continue
        runs.append(LoggedRun(path, run, tasks.get(run.task)))
    return LoggedEvaluation(record, tuple(runs), tuple(damaged))


def task_here(name: str) -> TaskFolder | None:
    """Return a task by its name, never by a directory; None if it is not here."""
    try:
        return task_named(name)
    except ReBenchError:
        return None


def plain_files(submission: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a kept submission by their names, in order and not too deep; no link is followed."""
    for directory, folders, names in os.walk(submission):
        below = Path(directory).relative_to(submission)
        folders[:] = sorted(folders) if len(below.parts) < _MAX_DEPTH else []
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield str(below / name), path
