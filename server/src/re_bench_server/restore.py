"""What becomes of a session when its server ends before it does, and what is said of that to its agent."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from re_bench.runs.attempts import AttemptLog
from re_bench.runs.elapsed import Elapsed
from re_bench.runs.score_process import record as append_attempt
from re_bench.scoring.score import Score
from re_bench.task.choices import instance_details
from re_bench_server.responses import (
    ToolResponse,
    attempt_response,
    error_response,
    final_response,
    interrupted_response,
    unscored_final_response,
)
from re_bench_server.scoring import ScoredAttempt, final_so_far

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_server.catalog import ServedTask
    from re_bench_server.session_record import AnswerCall, SessionRecord

SHUT_DOWN = (
    "The server is shutting down. This session goes on when it is back: files stay as they are, processes are lost."
)
_RESTARTED = (
    "The server was restarted. All processes of this session were lost, running commands and the shell included; "
    "files are as they were."
)
_INTERRUPTED = "The attempt that was being scored was interrupted: it counts for nothing. Call answer again."
_KEY_MISSING = (
    "The session's secret openai_api_key is stored nowhere and has to be sent again, by POST /create with the same "
    "X-Session-ID and with X-Secrets; until then there is no model, and attempts cannot be scored."
)
_RESULT_LOST = "The server was restarted before this call's result was delivered; it may have run in part."


def settle_answer(served: ServedTask, record: SessionRecord, log: Path, reason: str) -> None:
    """Find out from the log what became of a call of ``answer`` that still ran when its server or session ended.

    An attempt that did not reach the log gets there as an error, with the ``reason``. The record is brought up to date,
    and not saved.

    Raises:
        OSError: if the log cannot be read.
        ReBenchError: if it cannot be written.
    """
    call = record.answer
    if call is not None and call.state == "running":
        lost = log_lost_attempt(served, record, log, reason)
        call.state = "interrupted" if lost else "done"
    count_attempts(record, log)
    final = final_so_far(served, log)
    if call is not None and call.final and call.state == "done" and record.state == "open":
        attempt = _answered(served, record, log)
        if attempt is not None and attempt.score.status != "error":
            record.state, record.final = "finished", asdict(final)


def log_lost_attempt(served: ServedTask, record: SessionRecord, log: Path, reason: str) -> bool:
    """Append the attempt of the last call of ``answer`` as an error, if nothing did; tell whether that was needed.

    Raises:
        OSError: if the log cannot be read.
        ReBenchError: if it cannot be written.
    """
    assert record.answer is not None
    lost = len(AttemptLog(log).read().attempts) <= record.answer.attempts_before
    if lost:
        instance = instance_details(record.instance)
        score = Score.error(served.task.name, served.profile_name, reason, details=instance)
        append_attempt(served.task, score, log, _handed_in(record.answer))
    return lost


def _handed_in(call: AnswerCall) -> Elapsed | None:
    if call.wall_s is None or call.working_s is None:
        return None
    return Elapsed(call.wall_s, call.working_s)


def count_attempts(record: SessionRecord, log: Path) -> None:
    """Have the record say how many attempts the log has, and how many of them count.

    Raises:
        OSError: if the log cannot be read.
    """
    attempts = AttemptLog(log).read().attempts
    record.attempts = len(attempts)
    record.scored = sum(attempt.status != "error" for attempt in attempts)


def notice(record: SessionRecord, *, key_missing: bool) -> str:
    """Return what the first output of a tool after a restart begins with."""
    interrupted = record.answer is not None and record.answer.state == "interrupted"
    parts = [_RESTARTED, _INTERRUPTED if interrupted else "", _KEY_MISSING if key_missing else ""]
    return f"[{' '.join(filter(None, parts))}]\n"


def lost_response(
    served: ServedTask, record: SessionRecord, log: Path, task_id: str, *, withhold_reward: bool
) -> ToolResponse:
    """Return the response to a call of an earlier server: an attempt's outcome, or that it was interrupted.

    Args:
        served: the task.
        record: the session's.
        log: the session's attempts.
        task_id: the SDK's id of the call.
        withhold_reward: see :func:`re_bench_server.responses.attempt_response`.

    Raises:
        OSError: if the log cannot be read.
    """
    call = record.answer
    if call is None or call.task_id != task_id:
        return interrupted_response(f"{_RESULT_LOST} {_RESTARTED}")
    if call.state == "interrupted":
        return interrupted_response(f"{_INTERRUPTED} {_RESTARTED}")
    attempt = _answered(served, record, log)
    if attempt is None and record.state == "finished":
        return unscored_final_response(served.manifest, final_so_far(served, log))
    if attempt is None:
        return error_response("The attempt was not scored, because something of ours failed.")
    if record.state == "finished":
        return final_response(served.manifest, attempt)
    return attempt_response(served.manifest, attempt, withhold_reward=withhold_reward)


def _answered(served: ServedTask, record: SessionRecord, log: Path) -> ScoredAttempt | None:
    """Return the attempt of the last call of ``answer``, or None if the log has none."""
    assert record.answer is not None
    attempts = AttemptLog(log).read().attempts[record.answer.attempts_before :]
    if not attempts:
        return None
    last = attempts[0]
    score = Score(
        last.task, last.profile, last.status, last.raw, last.reward, last.message,
        details=last.details, seconds=last.seconds, sandbox=last.sandbox, submission=last.submission,
    )  # fmt: skip
    return ScoredAttempt(score, replace(final_so_far(served, log), attempt=last.n))
