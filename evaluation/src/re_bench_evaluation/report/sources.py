"""Finds the runs of a report: in evaluations, state directories of servers, single runs, attempt logs, other formats.

Results in formats of other programs are read by installed packages, which name a :class:`Reader` in the entry point
group :data:`GROUP`; a report is made of the evaluations that it writes.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from re_bench import records
from re_bench.errors import ReBenchError
from re_bench.processes import temporary_directory
from re_bench.records import (
    ATTEMPTS,
    SESSION,
    SESSIONS,
    TRACE,
    TRANSCRIPT,
    EvaluationRecord,
    RunRecord,
)
from re_bench_evaluation.report.data import EvaluationInfo, Problem
from re_bench_evaluation.report.findings import FILE as SCAN
from re_bench_evaluation.report.findings import read_scan
from re_bench_evaluation.report.text import plain_json
from re_bench_evaluation.working_time import SessionSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

GROUP = "re_bench.report_readers"
"""The entry points whose values are readers."""


@dataclass(frozen=True)
class RunFiles:
    """The files of a run."""

    path: Path
    """Its directory or log."""
    log: Path | None
    """The attempt log, which need not exist; None before the run has a session."""
    record: RunRecord | None = None
    """Of a run of an evaluation."""
    session_directory: Path | None = None
    session: SessionSummary | None = None
    waits: Path | None = None
    """What the agent waited for."""
    trace: Path | None = None
    transcript: Path | None = None


@dataclass
class Source:
    """An evaluation, or what is read like one."""

    path: Path
    info: EvaluationInfo
    """Its ``path`` is what the report shows: that of a bundle instead of where it was unpacked."""
    record: EvaluationRecord | None = None
    runs: list[RunFiles] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: Path, text: str) -> None:
        """Note what cannot be read."""
        self.problems.append(Problem(self.shown(path), text.replace(str(self.path), self.info.path)))

    @contextmanager
    def reading(self, path: Path) -> Iterator[None]:
        """Turn errors of the block into a problem of a path."""
        try:
            yield
        except OSError as error:
            self.problem(path, f"it cannot be read: {error.strerror or error}")
        except ReBenchError as error:
            self.problem(path, str(error))

    def show_as(self, path: str) -> None:
        """Have another path shown instead of this one, in the problems so far, too."""
        before = str(self.path)
        self.info = replace(self.info, path=path)
        self.problems = [
            Problem(self.shown(Path(problem.path)), problem.text.replace(before, path)) for problem in self.problems
        ]

    def shown(self, path: Path) -> str:
        """Return a path below this one as the report shows it."""
        inside = path.relative_to(self.path) if path.is_relative_to(self.path) else path
        return str(Path(self.info.path) / inside)


def is_bundle(path: Path) -> bool:
    """Tell whether a file is compressed as bundles are."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def open_source(path: Path) -> Source | None:
    """Return what a path leads to; None if it is nothing that has runs."""
    if path.is_file():
        return _log(path)
    if (path / EvaluationRecord.file_name()).is_file() or (path / records.RUNS).is_dir():
        return _evaluation(path)
    if (path / RunRecord.file_name()).is_file():
        return _single_run(path)
    sessions = sorted((path / SESSIONS).iterdir()) if (path / SESSIONS).is_dir() else [path]
    if sessions == [path] and not (path / SESSION).is_file() and not (path / ATTEMPTS).is_file():
        return None
    source = Source(path, _info("server" if sessions != [path] or (path / SESSION).is_file() else "log", path))
    for directory in (entry for entry in sessions if entry.is_dir()):
        session = _read_session(source, directory)
        waits, transcript = directory / records.WAITS, directory / TRANSCRIPT
        source.runs.append(
            RunFiles(directory, directory / ATTEMPTS, None, directory, session, waits, transcript=transcript)
        )
    return source


def _log(path: Path) -> Source | None:
    """Return an attempt log as a source; None if the file is neither empty nor has a line of one at its beginning."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if head and not any(line.startswith(b'{"attempt":') for line in head.split(b"\n")):
        return None
    return Source(path, _info("log", path), runs=[RunFiles(path, path)])


def _info(kind: Any, path: Path, record: EvaluationRecord | None = None) -> EvaluationInfo:
    info = EvaluationInfo("", kind, path.resolve().name, str(path))
    if record is None:
        return info
    return replace(
        info, name=record.name, created=record.created, plan=plain_json(record.plan), versions=record.versions,
        hardware=record.hardware, gpus=record.gpus,
    )  # fmt: skip


def _evaluation(path: Path) -> Source:
    source = Source(path, _info("evaluation", path))
    with source.reading(path):
        source.record = EvaluationRecord.load(path)
        source.info = _info("evaluation", path, source.record)
    with source.reading(path / SCAN):
        source.info = replace(source.info, scan=read_scan(path))
    for entry in sorted((path / records.RUNS).iterdir()) if (path / records.RUNS).is_dir() else ():
        with source.reading(entry):
            if (entry / RunRecord.file_name()).is_file():
                _add_run(source, entry)
            else:
                source.problem(entry, f"it has no {RunRecord.file_name()}, so it is not counted as a run")
    return source


def _single_run(path: Path) -> Source:
    """Return a run alone, with what the evaluation that it lies in says of its task."""
    record = None
    with suppress(ReBenchError):
        record = EvaluationRecord.load(path.resolve().parent.parent)
    source = Source(path, _info("evaluation", path, record), record)
    with source.reading(path):
        _add_run(source, path)
    return source


def _add_run(source: Source, directory: Path) -> None:
    record = RunRecord.load(directory)
    session, trace = _session_directory(source, directory, record), directory / records.AGENT / TRACE
    source.runs.append(
        RunFiles(
            path=directory,
            log=session / ATTEMPTS if session else None,
            record=record,
            session_directory=session,
            session=_read_session(source, session) if session else None,
            waits=directory / records.WAITS,
            trace=trace if trace.is_file() else None,
            transcript=session / TRANSCRIPT if session else None,
        )
    )


def _session_directory(source: Source, run: Path, record: RunRecord) -> Path | None:
    """Return the directory of a run's session: the one that its record names, else the newest."""
    if record.session is None:
        sessions = run / records.SERVER / SESSIONS
        return max((path for path in sessions.glob("*") if path.is_dir()), default=None)
    directory = record.session_in(run)
    if directory is not None and directory.is_dir():
        return directory
    source.problem(run, f"its session is missing, or has an impossible name: {record.session!r}")
    return None


def _read_session(source: Source, directory: Path) -> SessionSummary | None:
    if (directory / SESSION).exists():
        with source.reading(directory / SESSION):
            return SessionSummary.load(directory)
    return None


class Reader(Protocol):
    """Reads results of one format."""

    def reads(self, path: Path) -> bool:
        """Tell whether a file or directory is of this format, by a quick look; nothing of it can be believed."""

    def write(self, paths: Sequence[Path], directory: Path) -> list[Problem]:
        """Write results as evaluations, whose files ``docs/evaluations.md`` lists.

        Args:
            paths: all paths of one report that are of this format, so that what is in several counts once.
            directory: empty, and gone when the report is made. It gets a directory for each evaluation; names that
                begin with a dot are for the reader's own files.

        Returns:
            What could not be read, by the path that it was asked for or one below that.

        Raises:
            ReBenchError: if nothing can be read here.
            OSError: if ``directory`` cannot be written.
        """


def reader_of(path: Path) -> Reader | None:
    """Return what reads a path; None if it is of no format that any package reads.

    Raises:
        OSError: if it cannot be looked at.
    """
    return next((reader for reader in _installed() if reader.reads(path)), None)


def _installed() -> Iterator[Reader]:
    """Yield the readers; one that cannot be imported counts as not installed."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        with suppress(ImportError):
            yield entry.load()


def open_with(reader: Reader, paths: Sequence[Path], stack: ExitStack) -> tuple[list[Source], list[Problem]]:
    """Return the evaluations in results of another format, which are there until ``stack`` is closed.

    Raises:
        ReBenchError: as the reader does.
        OSError: if nothing can be written for the time being.
    """
    directory = stack.enter_context(temporary_directory("re-bench-report-"))
    problems = reader.write(paths, directory)
    shown = str(paths[0]) if len(paths) == 1 else os.path.commonpath([path.absolute() for path in paths])
    sources = []
    for evaluation in sorted(path for path in directory.iterdir() if not path.name.startswith(".")):
        source = open_source(evaluation)
        if source is not None:
            source.show_as(shown)
            sources.append(source)
    return sources, problems
