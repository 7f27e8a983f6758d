"""Finds the runs of a report: in evaluations, state directories of servers, single runs, attempt logs, other formats.

Results in formats of other programs are read by installed packages, which name a :class:`Reader` in the entry point
group :data:`GROUP`; a report is made of the evaluations that it writes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from re_bench import records
from re_bench.data.jsonl import json_object
from re_bench.errors import ReBenchError
from re_bench.processes import temporary_directory
from re_bench.records import ATTEMPTS, SESSION, SESSIONS, TRACE, TRANSCRIPT, EvaluationRecord, RunRecord
from re_bench_evaluation.report.data import EvaluationInfo, FindingInfo, Problem, ScanInfo
from re_bench_evaluation.report.findings import FILE as SCAN
from re_bench_evaluation.report.findings import SEVERITIES, read_scan
from re_bench_evaluation.report.text import plain_json, shortened, valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from re_bench_evaluation.report.findings import Finding

GROUP = "re_bench.report_readers"
"""The entry points whose values are readers."""
_MAX_RECORD = 16 << 20
"""Bytes; no session's record is longer."""
_MOST_FINDINGS = 500
_LONGEST_FINDING = 300
_LONGEST_EVIDENCE = 1000


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
    session: dict[str, Any] = field(default_factory=dict)
    """What its session's record says."""
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
        scan = _scan_info(path)
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
            log=session / ATTEMPTS if session else None,
            record=record,
            session_directory=session,
            session=_read_record(source, session) if session else {},
            waits=directory / records.WAITS,
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
    return RunFiles(
        path=directory,
        log=directory / ATTEMPTS,
        session_directory=directory,
        session=_read_record(source, directory),
        waits=directory / records.WAITS,
        transcript=directory / TRANSCRIPT,
    )


def _log(path: Path) -> Source | None:
    """Return an attempt log as a source; None if the file is neither empty nor has a line of one at its beginning."""
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if head and not any(line.startswith(b'{"attempt":') for line in head.split(b"\n")):
        return None
    return Source(path, _info("log", path), runs=[RunFiles(path, path)])


def _scan_info(directory: Path) -> ScanInfo | None:
    """Return the last scan of an evaluation; None if there is none. Its runs have names yet, and no keys.

    Raises:
        LogError: if the file is no plain file.
    """
    scan = read_scan(directory)
    if scan is None:
        return None
    ordered = sorted(scan.findings, key=lambda finding: -SEVERITIES.index(finding.severity))
    more = len(ordered) - _MOST_FINDINGS
    return ScanInfo(
        time=valid_unicode(scan.time),
        checks=tuple(map(valid_unicode, scan.checks)),
        findings=tuple(map(_finding, ordered[:_MOST_FINDINGS])),
        left_out=(*map(valid_unicode, scan.left_out), *([f"{more} findings are not shown"] if more > 0 else [])),
    )


def _finding(finding: Finding) -> FindingInfo:
    evidence = "\n".join(f"{name}: {value}" for name, value in finding.evidence.items())
    return FindingInfo(
        check=valid_unicode(finding.check),
        severity=finding.severity,
        text=shortened(valid_unicode(finding.text), _LONGEST_FINDING),
        run=None if finding.run is None else valid_unicode(finding.run),
        attempt=finding.attempt,
        evidence=shortened(valid_unicode(evidence), _LONGEST_EVIDENCE),
    )


def with_keys(scan: ScanInfo, evaluation: str) -> ScanInfo:
    """Return a scan whose findings name runs by their keys in a report."""
    return replace(
        scan,
        findings=tuple(
            finding if finding.run is None else replace(finding, run=f"{evaluation}/{finding.run}")
            for finding in scan.findings
        ),
    )


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

    Args:
        reader: of the format.
        paths: the results.
        stack: closes what is opened.

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
