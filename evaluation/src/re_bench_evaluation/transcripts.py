"""Export traces and transcripts as trajectories in ATIF, Harbor's format (its RFC 0001).

Values for which ATIF has no field are stored in ``extra``. Scores and the end of a run are steps with the
source ``system`` and the ``extra.event`` ``attempt`` or ``end``.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.attempts.elapsed import seconds_since_1970
from re_bench.attempts.log import AttemptLog
from re_bench.data.files import replace_file
from re_bench.errors import UsageError
from re_bench.records import AGENT, ATTEMPTS, SESSIONS, TRACE, TRANSCRIPT, EvaluationRecord, RunRecord, run_directories
from re_bench_evaluation.report.text import plain_json
from re_bench_evaluation.trajectory import UNKNOWN, Step, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from re_bench.attempts.log import Attempt
    from re_bench_evaluation.trajectory import Spent, Trajectory

VERSION = "ATIF-v1.7"
_MAX_MIB = 512
"""Maximum size of a trace or transcript, which is converted in memory."""
_TOKENS = ("prompt_tokens", "completion_tokens")
_MAX_DOLLARS = 1e9
"""Larger costs of a call are ignored, so that sums stay finite."""
_ABOUT = ("run", "agent", "model", "task", "profile", "seed", "state", "reason", "raw", "reward", "hardware")
"""The fields of the run's record that are copied to the ATIF document."""


@dataclass(frozen=True)
class Written:
    """A trajectory that has been written to ``path``."""

    path: Path
    source: Path
    steps: int
    attempts: int
    incomplete_lines: int
    """Number of incomplete lines in ``source``."""


@dataclass(frozen=True)
class _Source:
    """A trace or transcript to export, and its run."""

    path: Path
    name: str
    """The path of the output file relative to the output directory, without suffix."""
    run: RunRecord | None = None
    attempts: Path | None = None
    """The path of the attempt log."""


def write_trajectories(directory: Path, out: Path) -> list[Written]:
    """Export all traces and transcripts of an evaluation, a run, an agent, a session or a server's state directory.

    Files are written below the directory ``out``. For a run, ``RUN/trajectory.json`` is made from the agent's trace and
    ``RUN/server.trajectory.json`` from the server's transcript. Without a trace, ``RUN/trajectory.json`` is made from
    the transcript.
    """
    sources = list(_sources(directory))
    if not sources:
        raise UsageError(
            f"{directory}: no agent's trace.jsonl or server's transcript.jsonl; give the directory of an evaluation "
            "or a run, or a server's state directory"
        )
    try:
        return [_write(source, out) for source in sources]
    except OSError as error:
        raise UsageError(f"cannot export trajectories: {error}") from None


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
    if source.path.stat().st_size > _MAX_MIB << 20:
        raise UsageError(f"{source.path}: larger than {_MAX_MIB} MiB")
    trajectory, incomplete_lines = read_trajectory(source.path)
    attempts = None if source.attempts is None else AttemptLog(source.attempts).read().attempts
    run, session = source.run, source.path.parent.name
    agent: dict[str, Any] = {} if run is None else {"name": run.agent, "model_name": run.model}
    extra = {}
    if run is not None:
        session, extra = run.session or run.run, {"re_bench": {name: getattr(run, name) for name in _ABOUT}}
    document = document_of(trajectory, session, agent, extra, attempts)
    path = out / f"{source.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode())
    steps = document["steps"]
    scored = sum(step.get("extra", {}).get("event") == "attempt" for step in steps)
    return Written(path, source.path, len(steps), scored, incomplete_lines)


def document_of(
    trajectory: Trajectory,
    session: str,
    agent: Mapping[str, Any],
    extra: Mapping[str, Any],
    attempts: Sequence[Attempt] | None,
) -> dict[str, Any]:
    """Convert a trajectory to an ATIF document.

    If there are no steps, the document has a single step that says so, because ATIF requires at least one.

    Args:
        trajectory: the trajectory.
        session: the session's id in the document.
        agent: the agent's name and model according to the run's record.
        extra: values for the document's ``extra``.
        attempts: the attempts in the log; they replace the trajectory's attempts, which lack the scores hidden from the
            agent. None without a log.
    """
    about = {"name": UNKNOWN, "version": UNKNOWN, **agent}
    about |= {"name": trajectory.agent} if trajectory.agent else {}
    about |= {"model_name": trajectory.model} if trajectory.model else {}
    merge = _by_time if trajectory.kind == "trace" else _by_number
    steps = trajectory.steps if attempts is None and trajectory.kind == "trace" else merge(trajectory, attempts or ())
    written = [_fields(number, step) for number, step in enumerate(steps, 1)]
    written = written or [{"step_id": 1, "source": "system", "message": "No steps were recorded."}]
    document: dict[str, Any] = plain_json(
        {
            "schema_version": VERSION,
            "session_id": session,
            "agent": {name: value for name, value in about.items() if value is not None},
            "steps": written,
            "final_metrics": _final_metrics(written),
            "extra": {**extra, **trajectory.about},
        }
    )
    return document


def _by_time(trajectory: Trajectory, attempts: Sequence[Attempt]) -> Iterator[Step]:
    """Yield the steps of a trace, with its attempts replaced by the log's attempts, which are inserted by time."""
    waiting = [_attempt_step(attempt) for attempt in attempts]
    for step in trajectory.steps:
        if step.event == "attempt":
            continue
        while waiting and (step.event == "end" or _time(waiting[0]) <= _time(step)):
            yield waiting.pop(0)
        yield step
    yield from waiting


def _by_number(trajectory: Trajectory, attempts: Sequence[Attempt]) -> Iterator[Step]:
    """Yield the steps of a transcript, with its attempts replaced by the log's attempts with the same numbers."""
    by_number = {attempt.n: attempt for attempt in attempts}
    for step in trajectory.steps:
        if step.event != "attempt":
            yield step
        elif (attempt := by_number.pop(step.extra["attempt"], None)) is not None:
            yield _attempt_step(attempt, step.time)
    yield from map(_attempt_step, by_number.values())  # attempts whose calls are not in the transcript


def _time(step: Step) -> float:
    return -math.inf if step.time is None else step.time


def _attempt_step(attempt: Attempt, time: float | None = None) -> Step:
    score = "" if attempt.raw is None else f": raw {attempt.raw:z.6g}"
    score += "" if attempt.reward is None else f", reward {attempt.reward:z.4f}"
    message = f"\n{attempt.message}" if attempt.message else ""
    text = f"Attempt {attempt.n} was scored ({attempt.status}){score}. The run continues.{message}"
    extra: dict[str, Any] = {
        "attempt": attempt.n,
        "status": attempt.status,
        "raw": attempt.raw,
        "reward": attempt.reward,
    }
    extra |= {"submission": attempt.submission or None, "seconds": attempt.seconds}
    extra |= {} if attempt.private_raw is None else {"private_raw": attempt.private_raw}
    return Step("system", seconds_since_1970(attempt.time) if time is None else time, text, "attempt", extra=extra)


def _fields(number: int, step: Step) -> dict[str, Any]:
    """Convert a step to ATIF, without empty fields."""
    extra = ({"event": step.event} if step.event else {}) | step.extra
    fields: dict[str, Any] = {"step_id": number}
    fields |= {"timestamp": time} if (time := instant(step.time)) else {}
    fields |= {"source": step.source, "message": step.text}
    fields |= {"model_name": step.model} if step.model else {}
    if step.spent:
        fields |= {"metrics": metrics} if (metrics := _metrics(step.spent)) else {}
        fields |= {"llm_call_count": 1}
    elif step.extra.get("repeated"):
        fields |= {"llm_call_count": 0}
    fields |= {"extra": extra} if extra else {}
    name = f"call-{number}"
    if step.tool:
        call = {"tool_call_id": name, "function_name": step.tool, "arguments": step.arguments}
        fields |= {"tool_calls": [call]}
    if step.output is not None:
        result: dict[str, Any] = {"source_call_id": name} if step.tool else {}
        result |= {"content": step.output} | ({"extra": step.result} if step.result else {})
        fields |= {"observation": {"results": [result]}}
    return fields


def _metrics(spent: Spent) -> dict[str, Any]:
    """Return the tokens and the cost of a model call as metrics; invalid values are left out."""
    metrics: dict[str, Any] = {}
    for name in _TOKENS:
        value = getattr(spent, name)
        if isinstance(value, int) and value >= 0:
            metrics[name] = value
    if isinstance(spent.dollars, int | float) and 0 <= spent.dollars <= _MAX_DOLLARS:
        metrics["cost_usd"] = spent.dollars
    return metrics


def _final_metrics(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the number of steps, the total tokens, and the total cost if the cost of every call is known."""
    calls = [step.get("metrics", {}) for step in steps if step.get("llm_call_count")]
    metrics: dict[str, Any] = {"total_steps": len(steps)}
    if calls:
        unpriced = sum("cost_usd" not in call for call in calls)
        metrics |= {f"total_{name}": sum(call.get(name, 0) for call in calls) for name in _TOKENS}
        metrics |= {"extra": {"calls": len(calls), "unpriced_calls": unpriced}}
        if not unpriced:
            metrics["total_cost_usd"] = round(sum(call["cost_usd"] for call in calls), 9)
    return metrics


def instant(time: float | None) -> str | None:
    """Format seconds since 1970 as ISO 8601 in UTC; None if invalid."""
    if time is None:
        return None
    try:
        moment = dt.datetime.fromtimestamp(time, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
