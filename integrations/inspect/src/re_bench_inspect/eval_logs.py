"""Logs of Inspect as inputs of ``re-bench report``; each sample of a re-bench task, in each epoch, is a run.

A log may come from anybody, and Inspect's reader is slow to import. So a separate program reads logs
(:mod:`re_bench_inspect.log_conversion`), and a log that crashes it does not end the report.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, Field

from re_bench.data.cache import cache_key
from re_bench.errors import ReBenchError
from re_bench.processes import run_program
from re_bench.records import RUNS, SERVER, EvaluationRecord, Record, RunRecord, TaskRecord
from re_bench_evaluation.directory import utc
from re_bench_evaluation.report.data import Problem
from re_bench_evaluation.report.text import sum_of_known, valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_JSON = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_TIME_LIMIT_S = 300.0
"""For all logs of a report."""
_LONGEST_NAME = 60


class ConvertedSample(BaseModel):
    """A sample in one epoch: a run."""

    id: str
    epoch: int
    uuid: str
    """The same in every log that it was copied to."""
    directory: str
    """Next to the record; it has what a run's directory has, but ``run.json``."""
    task: TaskRecord
    run: RunRecord


class ConvertedLog(Record):
    """The file ``log.json``: what the program that read a log found in it."""

    task_id: str = ""
    """The same in every log of one task that was tried again."""
    created: str = ""
    plan: dict[str, Any] = Field(default_factory=dict)
    """What its runs have in common; only runs with the same plan are averaged."""
    versions: dict[str, str] = Field(default_factory=dict)
    samples: tuple[ConvertedSample, ...] = ()
    problem: str = ""
    """Why the log cannot be read at all."""
    problems: dict[str, str] = Field(default_factory=dict)
    """What cannot be read or is missing, by names in the log."""

    @classmethod
    def file_name(cls) -> str:
        """Return the name of the file."""
        return "log.json"


class _Run(NamedTuple):
    """A sample, its log, and the directory of that."""

    sample: ConvertedSample
    log: ConvertedLog
    directory: Path

    @property
    def key(self) -> tuple[str, str, int]:
        """The same for all tries of a sample."""
        return self.log.task_id, self.sample.id, self.sample.epoch

    def goes_with(self, other: _Run) -> bool:
        """Tell whether two runs can be averaged: of one plan, and not with two records of one task and profile."""
        one, two = self.sample.task, other.sample.task
        same_task = (one.name, one.profile) != (two.name, two.profile) or one == two
        return same_task and self.log.plan == other.log.plan


class InspectLogs:
    """Reads ``.eval`` and ``.json`` logs, and directories of them."""

    def reads(self, path: Path) -> bool:
        """Tell whether a path is a log, or a directory with logs in it."""
        return next(_logs_in(path), None) is not None

    def write(self, paths: Sequence[Path], directory: Path) -> list[Problem]:
        """Write the runs of logs as evaluations; samples that a later log has again count once.

        Args:
            paths: logs, and directories of them.
            directory: gets a directory for each evaluation.

        Returns:
            What could not be read.

        Raises:
            OSError: if ``directory`` cannot be written.
        """
        files = list({log.resolve(): log for path in paths for log in _logs_in(path)}.values())
        places = {log: directory / ".logs" / f"{number:04}" for number, log in enumerate(files)}
        problems = _convert(places)
        logs = {}
        for path, place in places.items():
            with suppress(ReBenchError):  # which are among the problems
                logs[path] = ConvertedLog.load(place)
        runs = [_Run(sample, log, places[path]) for path, log in logs.items() for sample in log.samples]
        for number, evaluation in enumerate(_evaluations(_counted(runs))):
            _write(evaluation, _name(paths), directory / f"{number:04}")
        return problems + list(_problems(logs))


READER = InspectLogs()
"""What the entry point names."""


def _logs_in(path: Path) -> Iterator[Path]:
    """Yield the logs that a path leads to, by name."""
    for log in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if log.suffix in {".eval", ".json"} and log.is_file() and (log.suffix == ".eval" or _is_json_log(log)):
            yield log


def _is_json_log(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return _JSON.match(file.read(1 << 10)) is not None
    return False


def _convert(logs: Mapping[Path, Path]) -> list[Problem]:
    """Have logs read into directories; return a problem for each log that ended the program that reads it."""
    for place in logs.values():
        place.mkdir(parents=True)
    left, problems = dict(logs), []
    while left:
        words = [str(path) for pair in left.items() for path in pair]
        try:
            # -P: no module of the working directory, which may be an agent's
            command = ["-P", "-m", "re_bench_inspect.log_conversion", *words]
            status, _output = run_program(command, capture=False, time_limit_s=_TIME_LIMIT_S)
            how = f"ended with exit status {status}"
        except subprocess.TimeoutExpired:
            how = f"took over {_TIME_LIMIT_S:g} s"
        left = {log: place for log, place in left.items() if not (place / ConvertedLog.file_name()).is_file()}
        if left:
            log = next(iter(left))
            del left[log]
            problems.append(Problem(str(log), f"it cannot be read: what reads it {how}; see its messages above"))
    return problems


def _counted(runs: Iterable[_Run]) -> Iterator[_Run]:
    """Yield the samples that count: of several tries of one the last that ended, else the last."""
    for _key, group in groupby(sorted(runs, key=lambda run: run.key), key=lambda run: run.key):
        tries = sorted(group, key=lambda run: (run.sample.run.state == "ended", run.log.created))
        sample, log, directory = tries[-1]
        earlier = {run.sample.uuid: run.sample.run for run in tries if run.sample.uuid != sample.uuid}.values()
        numbers = {
            "tries": max(sample.run.tries, 1 + len(earlier)),  # a log that continues another counts its errors
            "earlier_dollars": sum_of_known(run.dollars for run in earlier) or 0.0,
        }
        run = sample.run.model_copy(update=numbers)
        yield _Run(sample.model_copy(update={"run": run}), log, directory)


def _evaluations(runs: Iterable[_Run]) -> list[list[_Run]]:
    """Return the runs by what can be averaged, in the order of their logs."""
    evaluations: list[list[_Run]] = []
    for run in sorted(runs, key=lambda run: run.log.created):
        fitting = (group for group in evaluations if all(map(run.goes_with, group)))
        evaluation = next(fitting, None)
        if evaluation is None:
            evaluations.append(evaluation := [])
        evaluation.append(run)
    return evaluations


def _problems(logs: Mapping[Path, ConvertedLog]) -> Iterator[Problem]:
    """Yield what cannot be read of logs, and what the last logs of each task lack."""
    yield from (Problem(str(path), log.problem) for path, log in logs.items() if log.problem)
    last = {log.task_id: (path, log) for path, log in sorted(logs.items(), key=lambda entry: entry[1].created)}
    for path, log in last.values():
        yield from (Problem(f"{path}/{name}", text) for name, text in log.problems.items())


def _name(paths: Sequence[Path]) -> str:
    """Return the name of what is read from paths: that of the only one, else of the directories that they lie in."""
    resolved = [path.resolve() for path in paths]
    if len(resolved) == 1:
        return valid_unicode(resolved[0].stem)
    return valid_unicode(" ".join(sorted({path.name if path.is_dir() else path.parent.name for path in resolved})))


def _write(runs: Sequence[_Run], name: str, directory: Path) -> None:
    """Write an evaluation's directory."""
    for run in runs:
        sample, record = run.sample, run.sample.run
        words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{record.agent}.{record.model or ''}.{record.task}")[:_LONGEST_NAME]
        # The same whatever other logs there are, since pages that are open know a run by it.
        run_name = f"run.{words}.{record.seed}.{cache_key(*run.key)}"
        place = directory / RUNS / run_name
        place.mkdir(parents=True)
        record.model_copy(update={"run": run_name}).save(place)
        (place / SERVER).symlink_to((run.directory / sample.directory / SERVER).absolute())
    EvaluationRecord(
        name=name,
        created=min((run.log.created for run in runs), default="") or utc(),
        plan=runs[0].log.plan,
        tasks=tuple({(run.sample.task.name, run.sample.task.profile): run.sample.task for run in runs}.values()),
        versions={package: version for run in runs for package, version in run.log.versions.items()},
        hardware="",
    ).save(directory)
