"""A study: what several people have done at tasks, put together into one evaluation."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.records import RUNS, EvaluationRecord, RunRecord, TaskRecord, run_directories
from re_bench_evaluation.directory import run_name

if TYPE_CHECKING:
    from collections.abc import Sequence


def collect(study: Path, directories: Sequence[Path]) -> list[RunRecord]:
    """Copy the runs of evaluations into one; return those that were not there yet, by their new names.

    Args:
        study: an evaluation's directory, made if it does not exist.
        directories: of people's work, or other evaluations; all of their runs must have ended.

    Raises:
        UsageError: if a run has not ended, a task is of another version or profile, or ``study`` is something else.
        ReBenchError: if a record is damaged.
    """
    sources = [(directory, EvaluationRecord.load(directory)) for directory in directories]
    if not sources:
        raise UsageError("name the directories of the work to collect")
    known = (study / EvaluationRecord.file_name()).is_file()
    if not known and study.exists():
        raise UsageError(f"{study}: it is there, and no evaluation; give the directory of one, or a new one")
    record = EvaluationRecord.load(study) if known else sources[0][1].model_copy(update={"name": study.resolve().name})
    tasks = {task.name: task for task in record.tasks}
    for directory, source in sources:
        _add_tasks(tasks, source.tasks, directory)
    runs = [(path, RunRecord.load(path)) for directory, _source in sources for path in run_directories(directory)]
    open_runs = [str(path) for path, run in runs if run.state != "ended"]
    if open_runs:
        raise UsageError(f"not ended yet: {', '.join(open_runs)}; end them first with re-bench work finish")
    (study / RUNS).mkdir(parents=True, exist_ok=True)
    record.model_copy(update={"tasks": tuple(tasks.values())}).save(study)
    before = [RunRecord.load(path) for path in run_directories(study)]
    sessions, names = {run.session for run in before}, {run.run for run in before}
    new = []
    for path, run in runs:
        if run.session not in sessions:
            new.append(_copy(path, run, study, names))
            sessions.add(run.session)
    return new


def _add_tasks(tasks: dict[str, TaskRecord], more: Sequence[TaskRecord], directory: Path) -> None:
    for task in more:
        other = tasks.setdefault(task.name, task)
        for key in ("version", "profile"):
            if getattr(other, key) != getattr(task, key):
                raise UsageError(
                    f"{directory}: {task.name} is of {key} {getattr(task, key)}, and in the study of "
                    f"{getattr(other, key)}; collect it into another one"
                )


def _copy(path: Path, run: RunRecord, study: Path, names: set[str]) -> RunRecord:
    """Copy a run under the next free seed; it is there as a whole or not at all."""
    seed = run.seed
    while (name := run_name(run.agent, run.model, run.task, seed)) in names:
        seed += 1
    names.add(name)
    with tempfile.TemporaryDirectory(dir=study, prefix=".incoming-") as incoming:
        copy = Path(incoming) / name
        shutil.copytree(path, copy, symlinks=True)
        renamed = run.model_copy(update={"run": name, "seed": seed})
        renamed.save(copy)
        copy.rename(study / RUNS / name)
    return renamed
