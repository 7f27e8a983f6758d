"""What the paths of a report are: evaluations, state directories of servers, single runs, attempt logs, validations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench import records
from re_bench.data.jsonl import json_object
from re_bench.errors import ReBenchError
from re_bench.records import ATTEMPTS, SESSION, SESSIONS, TRACE, TRANSCRIPT, EvaluationRecord, RunRecord
from re_bench_evaluation.report.attempt_index import LogFiles
from re_bench_evaluation.report.data import EvaluationInfo
from re_bench_evaluation.report.findings import FILE as SCAN
from re_bench_evaluation.report.scan_info import scan_info
from re_bench_evaluation.report.task_data import Problem
from re_bench_evaluation.report.text import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_VERIFIED = "not verified"
_MAX_RECORD = 16 << 20
"""Bytes; no session's record is longer."""


@dataclass(frozen=True)
class RunFiles:
    """Where a run lies."""

    path: Path
    """Its directory or log."""
    files: LogFiles | None
    """None while there is no attempt log's place yet."""
    record: RunRecord | None = None
    """Of a run of an evaluation."""
    session: dict[str, Any] = field(default_factory=dict)
    """What its session's record says."""
    trace: Path | None = None
    transcript: Path | None = None


@dataclass
class Source:
    """An evaluation, or what is read like one."""

    path: Path
    info: EvaluationInfo
    """Its ``path`` is what the report shows: that of a bundle instead of where it was unpacked."""
    record: EvaluationRecord | None = None
    kept: bool = True
    """Whether it stays where it is, so that an index of it is of use."""
    runs: list[RunFiles] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: Path, text: str) -> None:
        """Note what cannot be read."""
        self.problems.append(Problem(self.shown(path), text.replace(str(self.path), self.info.path)))

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
    if (path / SESSIONS).is_dir():
        return _state_directory(path)
    if (path / SESSION).is_file() or (path / ATTEMPTS).is_file():
        source = Source(path, _info("server" if (path / SESSION).is_file() else "log", path))
        source.runs.append(_session(source, path))
        return source
    return None


def _info(kind: Any, path: Path, record: EvaluationRecord | None = None) -> EvaluationInfo:
    return EvaluationInfo(
        key="",
        kind=kind,
        name=record.name if record else path.resolve().name,
        path=str(path),
        created=record.created if record else None,
        plan=plain_json(record.plan) if record else {},
        versions=record.versions if record else {},
        hardware=record.hardware if record else None,
        gpus=record.gpus if record else (),
        verified=NOT_VERIFIED,
    )


def _evaluation(path: Path) -> Source:
    record, damage = _evaluation_record(path)
    source = Source(path, _info("evaluation", path, record), record)
    _add_scan(source, path)
    if damage:
        source.problem(path, damage)
    for entry in sorted((path / records.RUNS).iterdir()) if (path / records.RUNS).is_dir() else ():
        try:
            _add_entry(source, entry)
        except OSError as error:
            source.problem(entry, f"it cannot be read: {error.strerror or error}")
    return source


def _add_entry(source: Source, entry: Path) -> None:
    """Add an entry of the directory of runs, or say that it is no run."""
    if (entry / RunRecord.file_name()).is_file():
        _add_run(source, entry)
    else:
        source.problem(entry, f"it has no {RunRecord.file_name()}, so it is not counted as a run")


def _add_scan(source: Source, path: Path) -> None:
    try:
        scan = scan_info(path)
    except OSError as error:
        source.problem(path / SCAN, f"it cannot be read: {error.strerror or error}")
    else:
        source.info = replace(source.info, scan=scan)


def _evaluation_record(path: Path) -> tuple[EvaluationRecord | None, str]:
    try:
        return EvaluationRecord.load(path), ""
    except ReBenchError as error:
        return None, str(error)


def _single_run(path: Path) -> Source:
    """Return a run alone, with what the evaluation that it lies in says of its task."""
    record, _damage = _evaluation_record(path.resolve().parent.parent)
    source = Source(path, _info("evaluation", path, record), record)
    _add_run(source, path)
    return source


def _add_run(source: Source, directory: Path) -> None:
    try:
        record = RunRecord.load(directory)
    except ReBenchError as error:
        source.problem(directory, str(error))
        return
    session, damage = _session_directory(directory, record)
    if damage:
        source.problem(directory, damage)
    trace = directory / records.AGENT / TRACE
    source.runs.append(
        RunFiles(
            path=directory,
            files=LogFiles(session / ATTEMPTS, session, directory / records.WAITS) if session else None,
            record=record,
            session=_read_record(source, session) if session else {},
            trace=trace if trace.is_file() else None,
            transcript=session / TRANSCRIPT if session else None,
        )
    )


def _session_directory(run: Path, record: RunRecord) -> tuple[Path | None, str]:
    """Return the directory of a run's session: the one that its record names, else the newest."""
    if record.session is None:
        sessions = run / records.SERVER / SESSIONS
        return max((path for path in sessions.glob("*") if path.is_dir()), default=None), ""
    directory = record.session_in(run)
    if directory is None:
        return None, f"its record names an impossible session: {record.session!r}"
    if not directory.is_dir():
        return None, f"its session is missing: {directory}"
    return directory, ""


def _read_record(source: Source, session: Path) -> dict[str, Any]:
    """Return what a session's record says; nothing, with a problem, if it cannot be read."""
    path = session / SESSION
    try:
        with path.open("rb") as file:
            record = json_object(file.read(_MAX_RECORD))
    except FileNotFoundError:
        return {}
    except OSError as error:
        source.problem(path, f"it cannot be read: {error.strerror}")
        return {}
    if record is None:
        source.problem(path, "it cannot be read: it is no JSON object")
    return record or {}


def _state_directory(path: Path) -> Source:
    source = Source(path, _info("server", path))
    source.runs += [_session(source, entry) for entry in sorted((path / SESSIONS).iterdir()) if entry.is_dir()]
    return source


def _session(source: Source, directory: Path) -> RunFiles:
    """Return a session, without an evaluation around it."""
    waits = directory / records.WAITS
    return RunFiles(
        path=directory,
        files=LogFiles(directory / ATTEMPTS, directory, waits if waits.is_file() else None),
        session=_read_record(source, directory),
        transcript=directory / TRANSCRIPT,
    )


def _log(path: Path) -> Source | None:
    if not any(_looks_like_attempts(path)):
        return None
    source = Source(path, _info("log", path))
    source.runs.append(RunFiles(path, LogFiles(path)))
    return source


def _looks_like_attempts(path: Path) -> Iterator[bool]:
    """Yield whether a file is an attempt log: empty, or with a line of one at its beginning."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    yield not head
    yield any(line.startswith(b'{"attempt":') for line in head.split(b"\n"))
