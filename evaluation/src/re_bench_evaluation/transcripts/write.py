"""Finding the runs and sessions below a directory, and writing their trajectories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.data.files import replace_file
from re_bench.data.jsonl import LogError
from re_bench.errors import UsageError
from re_bench.records import (
    AGENT,
    ATTEMPTS,
    SESSIONS,
    TRACE,
    TRANSCRIPT,
    EvaluationRecord,
    RunRecord,
    run_directories,
)
from re_bench.runs.attempts import AttemptLog
from re_bench_evaluation.trajectory import read_trajectory
from re_bench_evaluation.transcripts.atif import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench_evaluation.transcripts.atif import Document

_MAX_MIB = 512
"""A longer trace or transcript is not converted: it would not fit into memory several times over."""


@dataclass(frozen=True)
class Written:
    """A trajectory that was written."""

    path: Path
    source: Path
    steps: int
    attempts: int
    torn: int
    """Lines of the source that were not whole."""


@dataclass(frozen=True)
class _Source:
    """A trace or transcript, and what else is known of its run."""

    path: Path
    name: str
    """Where the trajectory goes below the output directory, without its ending."""
    run: RunRecord | None = None
    attempts: Path | None = None
    """The attempt log of the run or session."""


def write_trajectories(directory: Path, out: Path) -> list[Written]:
    """Write a trajectory for each trace and transcript of an evaluation, a run, an mlab run or a server's state.

    Of a run of an evaluation, ``RUN/trajectory.json`` is the agent's own view if it has a trace, else the server's;
    ``RUN/server.trajectory.json`` is the server's beside a trace.

    Args:
        directory: an evaluation's, a run's, an mlab run's, a server's state directory, or a session's.
        out: a directory, which is made if need be.

    Raises:
        UsageError: if there is nothing to convert, or ``out`` cannot be written.
    """
    sources = list(_sources(directory))
    if not sources:
        raise UsageError(
            f"{directory}: there is no trace.jsonl of mlab and no transcript.jsonl of a server; give the directory of "
            "an evaluation, of a run, or a server's state directory"
        )
    try:
        return [_write(source, out) for source in sources]
    except LogError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{out}: the transcripts cannot be written: {error.strerror}") from None


def steps_of_run(run: Path) -> list[dict[str, Any]]:
    """Return the steps of a run of an evaluation: those of the agent's own trace, else those of its server.

    Raises:
        ReBenchError: if its record is damaged.
        LogError: if a file of it is no plain file.
    """
    source = next(_sources_of_run(run), None)
    return [] if source is None else _document(source)[0].steps


def _sources(directory: Path) -> Iterator[_Source]:
    if (directory / EvaluationRecord.file_name()).is_file():
        for run in run_directories(directory):
            yield from _sources_of_run(run)
    elif (directory / RunRecord.file_name()).is_file():
        yield from _sources_of_run(directory)
    elif (directory / TRACE).is_file():
        yield _Source(directory / TRACE, "trajectory")
    elif (directory / TRANSCRIPT).is_file():
        yield _Source(directory / TRANSCRIPT, "trajectory", None, directory / ATTEMPTS)
    else:
        for path in sorted(directory.glob(f"{SESSIONS}/*/{TRANSCRIPT}")):
            yield _Source(path, f"{path.parent.name}/trajectory", None, path.with_name(ATTEMPTS))


def _sources_of_run(directory: Path) -> Iterator[_Source]:
    record = RunRecord.load(directory)
    log, trace = record.attempt_log(directory), directory / AGENT / TRACE
    if trace.is_file():
        yield _Source(trace, f"{directory.name}/trajectory", record, log)
    transcript = None if log is None else log.with_name(TRANSCRIPT)
    if transcript is not None and transcript.is_file():
        name = "server.trajectory" if trace.is_file() else "trajectory"
        yield _Source(transcript, f"{directory.name}/{name}", record, log)


def _write(source: _Source, out: Path) -> Written:
    document, torn = _document(source)
    path = out / f"{source.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, document.to_json().encode())
    attempts = sum(step.get("extra", {}).get("event") == "attempt" for step in document.steps)
    return Written(path, source.path, len(document.steps), attempts, torn)


def _document(source: _Source) -> tuple[Document, int]:
    """Return the trajectory in ATIF, and how many lines of its source were torn."""
    if source.path.stat().st_size > _MAX_MIB << 20:
        raise UsageError(f"{source.path}: it is longer than {_MAX_MIB} MiB")
    trajectory, torn = read_trajectory(source.path)
    attempts = None if source.attempts is None else AttemptLog(source.attempts).read().attempts
    session = source.path.parent.name
    if source.run is not None:
        session = source.run.session or source.run.run
    if trajectory.kind == "trace":
        agent: dict[str, Any] = {"name": "mlab-agent"}
    else:
        agent = {} if source.run is None else {"name": source.run.agent, "model_name": source.run.model}
    return document_of(trajectory, session, agent, _about(source.run), attempts), torn


def _about(run: RunRecord | None) -> dict[str, Any]:
    """Return what a document says of its run, which may differ from what an agent claims."""
    if run is None:
        return {}
    names = ("run", "agent", "model", "task", "profile", "seed", "state", "reason", "raw", "reward", "hardware")
    return {"re_bench": {name: getattr(run, name) for name in names}}
