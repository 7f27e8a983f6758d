"""Whether what the records of an evaluation say agrees with its logs, which are the truth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from re_bench.data.jsonl import json_object, read_lines
from re_bench.errors import ReBenchError
from re_bench.limits import Bounds
from re_bench.normalise import normalise
from re_bench.processes import temporary_directory
from re_bench.records import TRANSCRIPT, EvaluationRecord, RunRecord, run_directories
from re_bench.runs.attempts import AttemptLog
from re_bench.runs.submission_store import Store
from re_bench.scoring.staging import stage
from re_bench.task.choices import instance_in
from re_bench.task.discovery import task_named
from re_bench_evaluation.directory import run_name
from re_bench_evaluation.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench.records import TaskRecord
    from re_bench.runs.attempts import Attempt, LogContents

_ANY_SUBMISSION = Bounds(mib=1 << 20, entries=1_000_000, depth=64)
_ROUNDING = 1e-9


def problems_of(evaluation: Path) -> Iterator[str]:
    """Yield what does not agree in an evaluation's directory, each problem in a line that begins with where it is."""
    try:
        record = EvaluationRecord.load(evaluation)
    except ReBenchError as error:
        yield str(error).removeprefix(f"{evaluation}/")
        return
    tasks = {task.name: task for task in record.tasks}
    for task in record.tasks:
        yield from _differences_here(task)
    yield from _missing_runs(evaluation, record)
    for directory in run_directories(evaluation):
        try:
            run = RunRecord.load(directory)
            problems = list(_of_run(directory, run, tasks.get(run.task)))
        except (ReBenchError, OSError) as error:
            problems = [str(error)]
        yield from (f"{directory.name}: {problem}" for problem in problems)


def notes_of(evaluation: Path) -> Iterator[str]:
    """Yield what a reader of the results has to know besides.

    Raises:
        ReBenchError: if the evaluation's record is damaged.
    """
    record = EvaluationRecord.load(evaluation)
    for task in record.tasks:
        here = _version_here(task.name)
        if here is None:
            yield f"{task.name}: this task is not here: its anchors were not compared, and nothing of it was scored"
        elif here != task.version:
            yield f"{task.name}: version {task.version} there and {here} here, so that its anchors were not compared"
    for directory in run_directories(evaluation):
        try:
            run = RunRecord.load(directory)
        except ReBenchError:
            continue  # which is a problem already
        if run.state != "ended":
            yield f"{directory.name}: the run is {run.state}"
        if run.tries > 1:
            yield f"{directory.name}: it was begun {run.tries} times; tries/ has what came of the earlier ones"


def submission_problems(evaluation: Path) -> Iterator[str]:
    """Yield the kept submissions that are not what their hash says."""
    for directory in run_directories(evaluation):
        for store in sorted(directory.glob("server/sessions/*/attempts.jsonl.submissions")):
            for copy in sorted(store.iterdir()):
                try:
                    with temporary_directory("re-bench-staged-") as scratch:
                        digest = stage(copy, scratch / "copy", _ANY_SUBMISSION).sha256
                except ReBenchError as error:
                    digest = str(error)
                if digest != copy.name:
                    yield f"{directory.name}: the submission {copy.name[:12]} is another one, by its hash: {digest}"


def _missing_runs(evaluation: Path, record: EvaluationRecord) -> Iterator[str]:
    """Yield how the runs are not those of the plan, as if somebody had chosen among the results."""
    try:
        plan = Plan.model_validate({key: value for key, value in record.plan.items() if key != "all_seeds"})
    except ValidationError:
        yield "evaluation.json: its plan is none of ours, so that nobody can tell whether runs are missing"
        return
    names = {task.id: task.name for task in record.tasks}
    there = {directory.name for directory in run_directories(evaluation)}
    planned = {
        run_name(agent, model, names.get(task, task), seed)
        for seed in plan.all_seeds
        for agent, model, task in plan.cells()
    }
    yield from (f"{name}: the plan has this run, and it is not there" for name in sorted(planned - there))
    yield from (f"{name}: the plan has no such run" for name in sorted(there - planned))


def _version_here(name: str) -> int | None:
    try:
        return task_named(name).manifest.version
    except ReBenchError:
        return None


def _differences_here(task: TaskRecord) -> Iterator[str]:
    """Yield how a task of the same version differs from ours."""
    if _version_here(task.name) != task.version:
        return
    manifest = task_named(task.name).manifest
    if task.model is not None and manifest.model is not None:
        manifest = manifest.with_model(task.model)
    if task.profile not in manifest.profiles:
        yield f"{task.name}: its version {task.version} has no profile {task.profile}"
        return
    for name in ("id", "direction", "aggregation"):
        if getattr(task, name) != getattr(manifest, name):
            yield f"{task.name}: {name} is {getattr(task, name)!r}, and {getattr(manifest, name)!r} in that version"
    anchors, there = manifest.anchors(task.profile), _pair(task.anchors)
    here = None if anchors is None else (anchors.starting, anchors.reference)
    if here != there:
        yield f"{task.name}: its anchors are {there}, and {here} in version {task.version}"


def _of_run(directory: Path, run: RunRecord, task: TaskRecord | None) -> Iterator[str]:
    if task is None:
        yield f"the evaluation has no task {run.task!r}"
        return
    if (run.task_id, run.profile) != (task.id, task.profile):
        yield f"it is of {run.task_id}/{run.profile}, and the task of the evaluation is {task.id}/{task.profile}"
    if not run.run == directory.name == run_name(run.agent, run.model, run.task, run.seed):
        yield f"its record is that of {run.run!r}, of {run.agent}, {run.model or 'no model'}, seed {run.seed}"
    path = run.attempt_log(directory)
    log = AttemptLog(path).read() if path is not None else None
    if log is None:
        if run.attempts or run.raw is not None:
            yield "it has a score, and no session that it could come from"
        return
    yield from _of_log(log, run, task)
    if run.state in ("ended", "failed"):
        yield from _of_final(log, run, task)
    assert path is not None
    if run.raw is not None:
        yield from _unchecked_score(Store(path), log, run.raw)
    yield from _of_transcript(path, log.attempts)


def _of_log(log: LogContents, run: RunRecord, task: TaskRecord) -> Iterator[str]:
    if log.torn:
        yield f"its attempt log has {log.torn} lines that are not whole"
    numbers = [attempt.n for attempt in log.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"its attempts are numbered {_shown(numbers)}, and not 1, 2, 3, ...: some are missing or in another order"
    for attempt in log.attempts:
        if (attempt.task, attempt.profile) != (run.task, run.profile):
            yield f"attempt {attempt.n} is of {attempt.task}/{attempt.profile}, not of {run.task}/{run.profile}"
        if attempt.raw is not None:
            anchors = _pair(attempt.details.get("anchors")) or _pair(task.anchors)
            if anchors is not None and not _equal(_reward(attempt.raw, anchors), attempt.reward):
                reward = "no reward" if attempt.reward is None else f"reward {attempt.reward:z.6g}"
                yield f"attempt {attempt.n}: raw {attempt.raw:z.6g} is not {reward} by its anchors"
            if _pair(task.anchors) not in (None, anchors) and not _by_an_instance(attempt, task):
                yield f"attempt {attempt.n}: it was scored by the anchors {anchors}, not by those of the evaluation"


def _of_final(log: LogContents, run: RunRecord, task: TaskRecord) -> Iterator[str]:
    try:
        final = log.final(task.aggregation, _pair(task.anchors))
    except ValueError as error:
        yield f"its attempts have no final score: {error}"
        return
    pairs = (("attempts", final.attempts), ("valid", final.valid), ("raw", final.raw), ("reward", final.reward))
    for name, value in pairs:
        if not _equal(getattr(run, name), value):
            yield f"{name} is {getattr(run, name)} in run.json, and {value} by the attempt log"


def _unchecked_score(store: Store, log: LogContents, raw: float) -> Iterator[str]:
    """Yield that nobody can check the score of a run, because no submission that decides it is there."""
    deciding = [attempt for attempt in log.attempts if _equal(attempt.raw_for_final, raw)]
    if deciding and not any(store.find(attempt.submission) for attempt in deciding):
        numbers = _shown([attempt.n for attempt in deciding])
        yield f"its score is that of attempt {numbers}, whose submission is not there, so that nobody can check it"


def _of_transcript(log: Path, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Yield the answers of a session's transcript that the attempt log tells otherwise."""
    by_number = {attempt.n: attempt for attempt in attempts}
    for line in read_lines(log.with_name(TRANSCRIPT)):
        entry = json_object(line) if b'"answer"' in line else None  # one by one: a stranger's may be many
        metadata = entry.get("metadata") if entry is not None else None
        if (
            entry is None
            or entry.get("tool") != "answer"
            or not isinstance(metadata, dict)
            or not isinstance(metadata.get("attempt"), int)
        ):
            continue
        number, told = metadata["attempt"], (metadata.get("status"), metadata.get("raw"))
        attempt = by_number.get(number)
        if attempt is None:
            yield f"attempt {number} is in the transcript, and not in the attempt log"
        elif told[0] != attempt.status or (told[1] is not None and not _equal(told[1], attempt.raw)):
            logged = (attempt.status, attempt.raw)
            yield f"attempt {number} is {told} in the transcript, and {logged} in the attempt log"


def missing_submissions(log: Path) -> list[int]:
    """Return the numbers of the attempts of a log whose submission is named and not kept."""
    store = Store(log)
    attempts = AttemptLog(log).read().attempts
    return [attempt.n for attempt in attempts if attempt.submission and store.find(attempt.submission) is None]


def _by_an_instance(attempt: Attempt, task: TaskRecord) -> bool:
    """Tell whether an attempt may have been scored by an instance with anchors of its own.

    Whether a task has instances is known only where it is here.
    """
    if instance_in(attempt.details) is None or _version_here(task.name) != task.version:
        return "instance" in attempt.details
    profile = task_named(task.name).manifest.profiles.get(task.profile)
    return profile is not None and profile.instance is not None


def _pair(anchors: Any) -> tuple[float, float] | None:
    try:
        return float(anchors["starting"]), float(anchors["reference"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _reward(raw: float, anchors: tuple[float, float]) -> float | None:
    try:
        return normalise(raw, *anchors)
    except ValueError:
        return None


def _equal(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return one == other


def _shown(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")  # noqa: PLR2004
