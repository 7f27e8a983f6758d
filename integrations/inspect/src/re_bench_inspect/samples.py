"""The session of the sample that runs, and its attempts in the sample's store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from inspect_ai._util.working import report_sample_waiting_time
from inspect_ai.tool import ToolError
from inspect_ai.util import sandbox

from re_bench.records import ATTEMPTS, TaskRecord
from re_bench.runs.attempts import AttemptLog
from re_bench_inspect.provider import ReBenchSandbox
from re_bench_inspect.store import SessionStore

if TYPE_CHECKING:
    from inspect_ai.util import Store

    from re_bench.runs.attempts import Attempt
    from re_bench_server.responses import ToolResponse
    from re_bench_server.session import Session

_LONGEST_DETAILS = 1 << 16
"""Characters of an attempt's details as JSON; longer ones are in the attempt log alone."""
_KEPT_DETAILS = ("anchors", "instance")
"""What readers of scores need of the details."""


def session_of_sample() -> Session | None:
    """Return the session of the sample that runs; None where it has another sandbox, or none."""
    try:
        session: Session | None = sandbox().as_type(ReBenchSandbox).session
    except (ProcessLookupError, TypeError):
        return None
    return session


def current_session() -> Session:
    """Return the session of the sample that runs.

    Raises:
        ToolError: if it has none.
    """
    session = session_of_sample()
    if session is None:
        raise ToolError("this needs a task of re-bench: its sandbox has no session")
    return session


def report_wait(response: ToolResponse) -> None:
    """Tell Inspect how long a call waited for a GPU's turn or in the queue of scorings: that is no working time."""
    if waited_s := response.metadata.get("waited_s"):
        report_sample_waiting_time(waited_s)


async def record_attempts(store: Store, session: Session) -> SessionStore:
    """Write what the session's log and record have into the sample's store, and return that part of the store."""
    await session.shell.refresh_cost()
    contents = await asyncio.to_thread(AttemptLog(session.directory / ATTEMPTS).read)
    record, kept = session.record, SessionStore(store=store)
    kept.task = TaskRecord.of(session.served.task, session.served.profile_name).model_dump(mode="json")
    kept.session, kept.directory = session.name, str(session.directory)
    kept.attempts = [*kept.attempts, *map(_plain, contents.attempts[len(kept.attempts) :])]
    kept.final, kept.hours = record.final, session.clock.elapsed().working_s / 3600
    kept.model_dollars, kept.scoring_model_dollars = record.model_dollars, record.scoring_model_dollars
    return kept


def _plain(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as JSON values, of long details only what scores depend on."""
    values = asdict(attempt)
    if len(json.dumps(values["details"])) > _LONGEST_DETAILS:
        values["details"] = {name: values["details"][name] for name in _KEPT_DETAILS if name in values["details"]}
    return values
