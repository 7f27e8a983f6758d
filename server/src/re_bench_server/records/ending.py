"""The end of a session that no server has open: what ``re-bench sessions end`` does without one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from re_bench.errors import UsageError
from re_bench.runs.attempts import AttemptLog
from re_bench.task.chat_model import ChatModel
from re_bench.task.choices import choose_model
from re_bench.task.discovery import task_named
from re_bench_server.catalog import ServedTask
from re_bench_server.records.session_files import ATTEMPTS, ENDED_BY_OPERATOR
from re_bench_server.scoring import final_so_far
from re_bench_server.session_record import SessionRecord, utc
from re_bench_server.state_dir import StateDirectory, clear

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_server.records.session_files import SessionFiles


def end_without_server(state: Path, session: SessionFiles) -> None:
    """Mark a suspended session as ended, with the final score of its attempts, and remove its workspace.

    Raises:
        UsageError: if it has ended already, its task is not here, or a server uses the state directory after all.
        ReBenchError: if its record cannot be used.
    """
    directory = StateDirectory(state)  # no server starts meanwhile
    try:
        record = SessionRecord.load(session.directory)
        if record.state == "ended":
            raise UsageError(f"{session.name}: it has ended already")
        log = session.directory / ATTEMPTS
        if record.final is None and log.exists():
            record.final = asdict(final_so_far(_served(record, log), log))
        record.state, record.ended, record.reason = "ended", utc(), ENDED_BY_OPERATOR
        record.save(session.directory)
        clear(session.directory)
    finally:
        directory.close()


def _served(record: SessionRecord, log: Path) -> ServedTask:
    models = [ChatModel.from_details(attempt.details) for attempt in AttemptLog(log).read().attempts]
    task = task_named(record.task)  # without it its attempts cannot be combined
    return ServedTask(choose_model(task, record.profile, next(filter(None, models), None)), record.profile)
