"""Logs of Inspect as inputs of ``re-bench report``; each sample of a re-bench task, in each epoch, is a run."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory, cache_key, file_lock, new_directory
from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import run_program
from re_bench.records import RUNS, SERVER, EvaluationRecord, RunRecord, TaskRecord
from re_bench_evaluation.directory import utc
from re_bench_evaluation.report.data import Problem
from re_bench_evaluation.report.text import sum_of_known, valid_unicode
from re_bench_inspect.converted_log import VERSION, ConvertedLog, ConvertedSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_JSON = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_TIME_LIMIT_S = 300.0
"""For all logs of a report that were not read before."""
_LONGEST_NAME = 60


@dataclass(frozen=True)
class _Log:
    """A log that has been read."""

    path: Path
    directory: Path
    record: ConvertedLog


@dataclass(frozen=True)
class _Run:
    """A sample that counts, and where it lies."""

    sample: ConvertedSample
    log: _Log
    earlier: Sequence[ConvertedSample]
    """The tries of it that do not count, in other logs."""

    @property
    def record(self) -> RunRecord:
        """The run, with its earlier tries and what they have cost."""
        dollars = sum_of_known(sample.run.dollars for sample in self.earlier) or 0.0
        run = self.sample.run
        tries = max(run.tries, 1 + len(self.earlier))  # a log that goes on from another counts the errors of that one
        return run.model_copy(update={"tries": tries, "earlier_dollars": dollars})


@dataclass
class _Evaluation:
    """Runs that can be averaged: of one plan, and with one record of each task in each profile."""

    runs: list[_Run] = field(default_factory=list)
    tasks: dict[tuple[str, str], TaskRecord] = field(default_factory=dict)

    def takes(self, run: _Run) -> bool:
        """Tell whether a run can be averaged with those that are here."""
        task = run.sample.task
        same = self.tasks.get((task.name, task.profile), task) == task
        return same and (not self.runs or self.runs[0].log.record.plan == run.log.record.plan)

    def add(self, run: _Run) -> None:
        """Add a run."""
        self.tasks[run.sample.task.name, run.sample.task.profile] = run.sample.task
        self.runs.append(run)


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
        files = {log.resolve(): log for path in paths for log in _logs_in(path)}
        logs, problems = _read(list(files.values()), directory / ".logs")
        evaluations: list[_Evaluation] = []
        for run in sorted(_counted(logs), key=lambda run: run.log.record.created):  # so that new ones come last
            evaluation = next((one for one in evaluations if one.takes(run)), None)
            if evaluation is None:
                evaluations.append(evaluation := _Evaluation())
            evaluation.add(run)
        for number, evaluation in enumerate(evaluations):
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


def _read(logs: Sequence[Path], directory: Path) -> tuple[list[_Log], list[Problem]]:
    """Return what logs say, from the cache as far as they were read before."""
    version = f"{VERSION}-{metadata.version('inspect-ai')}"
    places: dict[Path, Path] = {}
    unread: dict[Path, Path] = {}
    problems = []
    for number, log in enumerate(logs):
        try:
            kept = cache_directory() / "reports" / "inspect" / f"{sha256_of(log)}-{version}"
        except OSError as error:
            problems.append(Problem(str(log), f"it cannot be read: {error.strerror or error}"))
            continue
        places[log] = kept
        if not (kept / ConvertedLog.file_name()).is_file():
            unread[log] = directory / f"{number:04}"
            unread[log].mkdir(parents=True)
    problems += [Problem(str(log), text) for log, text in _convert(unread).items()]
    read = []
    for log, place in places.items():
        new = unread.get(log)
        with suppress(ReBenchError):  # which are among the problems
            record = ConvertedLog.load(new or place)
            if new and record.status != "started":
                _keep(new, place)
            read.append(_Log(log, new or place, record))
    return read, problems + [Problem(str(log.path), log.record.problem) for log in read if log.record.problem]


def _convert(logs: Mapping[Path, Path]) -> dict[Path, str]:
    """Have logs read by programs of their own, and return what went wrong with those that end one."""
    left, problems = dict(logs), {}
    while left:
        words = [str(path) for pair in left.items() for path in pair]
        try:
            status, _none = run_program(
                # -P: no module of the working directory, which may be an agent's
                ["-P", "-m", "re_bench_inspect.log_conversion", *words],
                capture=False,
                time_limit_s=_TIME_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            status = None
        left = {log: place for log, place in left.items() if not (place / ConvertedLog.file_name()).is_file()}
        if left:
            log = next(iter(left))
            del left[log]
            how = f"ended with exit status {status}" if status is not None else f"took over {_TIME_LIMIT_S:g} s"
            problems[log] = f"it cannot be read: what reads it {how}; see its messages above"
    return problems


def _keep(directory: Path, target: Path) -> None:
    """Keep what was read of a log in the cache, where that can be written."""
    with (
        suppress(OSError, UsageError),
        file_lock(target.with_name(".lock")),
        new_directory(target) as kept,
    ):
        shutil.copytree(directory, kept, symlinks=True, dirs_exist_ok=True)


def _counted(logs: Sequence[_Log]) -> Iterator[_Run]:
    """Yield the samples that count: of several tries of one the last that ended, else the last."""
    everything = [(sample, log) for log in logs for sample in log.record.samples]

    def name(entry: tuple[ConvertedSample, _Log]) -> tuple[str, str, int]:
        return entry[1].record.task_id, entry[0].id, entry[0].epoch

    def rank(entry: tuple[ConvertedSample, _Log]) -> tuple[bool, str]:
        return entry[0].run.state == "ended", entry[1].record.created

    for _name, group in groupby(sorted(everything, key=name), key=name):
        tries = sorted(group, key=rank)
        sample, log = tries[-1]
        others = {other.uuid: other for other, _log in tries if other.uuid != sample.uuid}
        yield _Run(sample, log, tuple(others.values()))


def _problems(logs: Sequence[_Log]) -> Iterator[Problem]:
    """Yield what the last logs of each task lack."""
    last = {log.record.task_id: log for log in sorted(logs, key=lambda log: log.record.created)}
    for log in last.values():
        record = log.record
        for name, text in record.problems.items():
            yield Problem(f"{log.path}/{name}", text)
        if not record.problem and record.samples_logged < record.expected:
            state = "goes on, or was killed" if record.status == "started" else f"has ended with status {record.status}"
            text = f"{record.samples_logged} of {record.expected} samples are in it: its evaluation {state}"
            yield Problem(f"{log.path}/samples", text)


def _name(paths: Sequence[Path]) -> str:
    """Return the name of what is read from paths: that of the only one, else of the directories that they lie in."""
    resolved = [path.resolve() for path in paths]
    if len(resolved) == 1:
        return valid_unicode(resolved[0].stem)
    return valid_unicode(" ".join(sorted({path.name if path.is_dir() else path.parent.name for path in resolved})))


def _write(evaluation: _Evaluation, name: str, directory: Path) -> None:
    """Write an evaluation's directory."""
    records = list({run.log.path: run.log.record for run in evaluation.runs}.values())
    for run in evaluation.runs:
        record, sample = run.record, run.sample
        words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{record.agent}.{record.model or ''}.{record.task}")[:_LONGEST_NAME]
        # The same whatever other logs there are, since pages that are open know a run by it.
        run_name = f"run.{words}.{record.seed}.{cache_key(run.log.record.task_id, sample.id, sample.epoch)}"
        place = directory / RUNS / run_name
        place.mkdir(parents=True)
        record.model_copy(update={"run": run_name}).save(place)
        (place / SERVER).symlink_to((run.log.directory / run.sample.directory / SERVER).absolute())
    EvaluationRecord(
        name=name,
        created=min((record.created for record in records), default="") or utc(),
        plan=records[0].plan,
        tasks=tuple(evaluation.tasks.values()),
        versions={package: version for record in records for package, version in record.versions.items()},
        hardware="",
    ).save(directory)
