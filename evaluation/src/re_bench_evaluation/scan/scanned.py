"""What the checks of a scan look at: runs with their attempts, and the text files of kept submissions."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.records import EvaluationRecord, RunRecord, run_directories
from re_bench.runs.attempts import AttemptLog
from re_bench.runs.submission_store import Store
from re_bench.task.discovery import task_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.records import TaskRecord
    from re_bench.runs.attempts import Attempt
    from re_bench.task.discovery import Task

MAX_TEXT = 256 << 10
"""Bytes of a file that are looked at."""
_MAX_FILES = 200
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class ScannedRun:
    """A run of an evaluation."""

    directory: Path
    record: RunRecord
    task_record: TaskRecord | None

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.name

    @cached_property
    def log(self) -> Path | None:
        """Its attempt log."""
        return self.record.attempt_log(self.directory)

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """Its attempts, in order; none if the log cannot be read."""
        try:
            return AttemptLog(self.log).read().attempts if self.log is not None else ()
        except OSError:
            return ()

    @cached_property
    def task(self) -> Task | None:
        """The task as it is here, of the same version; None if it is not here."""
        return task_here(self.task_record) if self.task_record is not None else None

    @property
    def margin(self) -> float:
        """How far from the baseline a reward may be by chance."""
        if self.task is None or self.record.profile not in self.task.manifest.profiles:
            return 0.05
        return self.task.manifest.profiles[self.record.profile].tolerance.baseline

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
class Scanned:
    """An evaluation that is scanned."""

    directory: Path
    record: EvaluationRecord
    runs: tuple[ScannedRun, ...]
    left_out: tuple[str, ...]
    """Runs that cannot be read, and why."""


def read_evaluation(directory: Path) -> Scanned:
    """Read what there is of an evaluation; a run whose record is damaged is left out.

    Raises:
        ReBenchError: if the evaluation's own record is damaged, or there is none.
    """
    record = EvaluationRecord.load(directory)
    tasks = {task.name: task for task in record.tasks}
    runs, left_out = [], []
    for path in run_directories(directory):
        try:
            run = RunRecord.load(path)
        except ReBenchError as error:
            left_out.append(str(error))
            continue
        runs.append(ScannedRun(path, run, tasks.get(run.task)))
    return Scanned(directory, record, tuple(runs), tuple(left_out))


def task_here(record: TaskRecord) -> Task | None:
    """Return the task of a record if it is here in the same version."""
    try:
        task = task_named(record.name)
    except ReBenchError:
        return None
    return task if task.manifest.version == record.version else None


def text_files(submission: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the files of a kept submission that are text; no link is followed."""
    count = 0
    for directory, folders, names in os.walk(submission):
        folders.sort()
        for name in sorted(names):
            count += 1
            if count > _MAX_FILES:
                return
            path = Path(directory, name)
            text = _text(path)
            if text is not None:
                yield os.fsencode(path.relative_to(submission)).decode("utf-8", "backslashreplace"), text


def _text(path: Path) -> str | None:
    try:
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data = file.read(MAX_TEXT)
    except OSError:
        return None
    return None if b"\0" in data else data.decode("utf-8", "replace")
