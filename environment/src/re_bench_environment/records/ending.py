"""The end of a session that no server has open: what ``re-bench sessions end`` does without one."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench_environment.catalog import ServedTask
from re_bench_environment.records.session_files import ATTEMPTS, ENDED_BY_OPERATOR, RECORD
from re_bench_environment.scoring import final_score
from re_bench_environment.state_dir import StateDirectory, clear

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_environment.records.session_files import SessionFiles


def end_without_server(state: Path, session: SessionFiles) -> None:
    """Mark a suspended session as ended, with the final score of its attempts, and remove its workspace.

    Raises:
        UsageError: if it has ended already, or its task is not here.
        ReBenchError: if a server uses the state directory after all.
    """
    directory = StateDirectory(state)  # no server starts meanwhile
    try:
        if session.ended() is not None:
            raise UsageError(f"{session.name}: it has ended already")
        record: dict[str, Any] = session.record() | {"state": "ended", "reason": ENDED_BY_OPERATOR}
        if not record.get("final"):
            record["final"] = asdict(final_score(_served(record), session.directory / ATTEMPTS))
        record["ended"] = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        unfinished = session.directory / f".{RECORD}.new"
        unfinished.write_text(json.dumps(record) + "\n", encoding="utf-8")
        unfinished.replace(session.directory / RECORD)
        clear(session.directory)
    finally:
        directory.close()


def _served(record: dict[str, Any]) -> ServedTask:
    from re_bench.task.discovery import find_tasks  # noqa: PLC0415 - takes a moment

    for task in find_tasks().values():
        if task.manifest.id == record.get("task"):
            return ServedTask(task, record["profile"])
    raise UsageError(f"the session's task, {record.get('task')!r}, is not here, so its attempts cannot be combined")
