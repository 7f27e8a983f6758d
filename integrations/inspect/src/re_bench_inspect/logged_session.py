"""A sample of a log of Inspect as a run of an evaluation: its record, its attempt log, and what its agent did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from re_bench.records import ATTEMPTS, SERVER, SESSIONS, TRANSCRIPT, RunRecord, TaskRecord
from re_bench.runs.attempts import Attempt, AttemptLog, LogContents, encoded
from re_bench_evaluation.report.runs import anchor_pair
from re_bench_evaluation.report.text import as_finite, bounded, shortened, sum_of_known, valid_unicode
from re_bench_inspect.logged_calls import transcript_lines
from re_bench_inspect.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inspect_ai.log import EvalLog, EvalSample

_ATTEMPT = TypeAdapter(Attempt)
_SESSION = "session"
_REASONS = {"working": "time", "cost": "dollars", "token": "tokens", "message": "messages", "turn": "steps"}
"""What records of ours call a limit, by what Inspect calls it."""
_LONGEST_NAME = 100
_LONGEST_REASON = 300
_LARGEST = 1 << 53


def write_run(sample: EvalSample, log: EvalLog, directory: Path) -> tuple[TaskRecord, RunRecord]:
    """Write what a sample's store and events say of its session, and return the records of its task and of the run.

    Args:
        sample: of the log.
        log: its header.
        directory: the run's, which is made.

    Raises:
        ValueError: if it is no sample of re-bench, or its store is not as re-bench leaves it.
        OSError: if nothing can be written.
    """
    store = sample.store_as(SessionStore)
    if not store.task:
        ended = f"; it ended with an error: {_one_line(sample.error.message)}" if sample.error else ""
        raise ValueError(f"it is no sample of a re-bench task, or no session had begun{ended}")
    if sample.invalidation is not None:
        raise ValueError("it was marked as invalid in Inspect, so it is left out")
    task = TaskRecord.model_validate(store.task)
    attempts = list(_attempts(store.attempts))
    session = directory / SERVER / SESSIONS / _SESSION
    session.mkdir(parents=True)
    (session / ATTEMPTS).write_bytes(b"".join(encoded(attempt) + b"\n" for attempt in attempts))
    (session / TRANSCRIPT).write_bytes(b"".join(line + b"\n" for line in transcript_lines(sample.events)))
    _link_submissions(session / ATTEMPTS, Path(store.directory), attempts)
    return task, _record(sample, log, task, store, attempts)


def _attempts(values: Sequence[dict[str, Any]]) -> Iterator[Attempt]:
    """Yield the attempts that are whole, numbered as a log numbers them."""
    number = 0
    for value in values:
        try:
            attempt = _ATTEMPT.validate_json(json.dumps(value), strict=True)
            line = encoded(replace(attempt, n=number + 1))
        except (ValueError, TypeError, RecursionError):
            continue  # the record counts it, so that a report says that it is missing
        number += 1
        yield _ATTEMPT.validate_python(json.loads(line)["attempt"])


def _link_submissions(log: Path, directory: Path, attempts: Sequence[Attempt]) -> None:
    """Let the copies of submissions be seen where the session's directory is on this machine.

    A log can name any directory, so the one that it names must have an attempt log that says the same, but for details,
    of which Inspect's log may have fewer.
    """
    original = directory / ATTEMPTS
    copies = original.with_name(f"{original.name}.submissions")
    try:
        if not attempts or not directory.is_absolute() or copies.is_symlink() or not copies.is_dir():
            return
        known = {_without_details(attempt) for attempt in AttemptLog(original).read().attempts}
    except (OSError, ValueError):
        return
    if known.issuperset(map(_without_details, attempts)):
        log.with_name(f"{log.name}.submissions").symlink_to(copies)


def _without_details(attempt: Attempt) -> bytes:
    return encoded(replace(attempt, details={}))


def _record(
    sample: EvalSample, log: EvalLog, task: TaskRecord, store: SessionStore, attempts: Sequence[Attempt]
) -> RunRecord:
    raw, reward = _final(task, store, attempts)
    wall_s = as_finite(sample.total_time)
    working_s = as_finite(sample.working_time)
    return RunRecord(
        run="",
        agent=_agent(log),
        model=None if log.eval.model.startswith("none/") else _name(log.eval.model),
        task=task.name,
        task_id=task.id,
        profile=task.profile,
        seed=sample.epoch,
        state="failed" if sample.error and store.final is None else "ended",
        tries=1 + len(sample.error_retries or ()),
        began=sample.started_at,
        ended=sample.completed_at,
        reason=_reason(sample),
        wall_s=wall_s,
        working_s=working_s if working_s is None or wall_s is None else min(working_s, wall_s),
        dollars=_dollars(sample),
        task_dollars=_sum([store.model_dollars, store.scoring_model_dollars]),
        tokens=min(_LARGEST, sum(max(0, usage.total_tokens) for usage in sample.model_usage.values())),
        steps=sample.turn_count,
        session=_SESSION,
        attempts=len(store.attempts),
        valid=sum(attempt.status == "valid" for attempt in attempts),
        raw=raw,
        reward=reward,
    )


def _final(task: TaskRecord, store: SessionStore, attempts: Sequence[Attempt]) -> tuple[float | None, float | None]:
    """Return the final raw score and reward as the log has them; computed here where it has none."""
    if store.final is not None:
        return as_finite(store.final.get("raw")), as_finite(store.final.get("reward"))
    final = LogContents(tuple(attempts), 0).final(task.aggregation, anchor_pair(task))
    return final.raw, final.reward


def _agent(log: EvalLog) -> str:
    """Return the name of the solver or agent, with the arguments that it was given on the command line."""
    steps = log.plan.steps
    name = log.eval.solver or (steps[-1].solver if steps else "") or "agent"
    arguments = (log.eval.solver_args_passed or {}) if log.eval.solver else {}
    words = ", ".join(f"{key}={value}" for key, value in sorted(arguments.items()))
    return _name(name.rpartition("/")[2] + (f"({words})" if words else ""))


def _reason(sample: EvalSample) -> str:
    if sample.error:
        return _one_line(sample.error.message)
    return _REASONS.get(sample.limit.type, sample.limit.type) if sample.limit else "finished"


def _dollars(sample: EvalSample) -> float | None:
    """Return what all models of the sample have cost; None if that of one is not known, or there was none."""
    costs = [usage.total_cost for usage in sample.model_usage.values()]
    return None if None in costs else _sum(costs)


def _sum(dollars: Iterable[float | None]) -> float | None:
    return sum_of_known(max(0.0, bounded(value)) for value in map(as_finite, dollars) if value is not None)


def _name(text: str) -> str:
    return shortened(valid_unicode(text), _LONGEST_NAME)


def _one_line(text: str) -> str:
    return shortened(valid_unicode(" ".join(text.split())), _LONGEST_REASON)
