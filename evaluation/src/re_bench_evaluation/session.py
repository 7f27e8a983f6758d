"""A run's session at its server: the options it is served with, what its logs tell, and its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import json_object
from re_bench.records import ATTEMPTS, SERVER, SERVER_LOG, SESSION, SESSIONS, WAITS
from re_bench.runs.attempts import AttemptLog
from re_bench.runs.elapsed import Interval, common, seconds_since_1970, total_s, without
from re_bench_evaluation.children import Child
from re_bench_evaluation.working_time import read_waits, scorings

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.records import TaskRecord
    from re_bench_evaluation.plan import Plan

_TEMPLATES = "templates"
_END_S = 120.0


def server_words(plan: Plan, task: TaskRecord) -> list[str]:
    """Return the options of ``re-bench serve`` that a plan has for the server of a run."""
    options, budget = plan.server, plan.budget
    words = ["--network", options.network, *(f"--allow={host}" for host in options.allow)]
    for name in ("network_mib", "max_attempts", "memory_mib", "disk_mib", "sandbox"):
        value = getattr(options, name)
        words += [f"--{name.replace('_', '-')}", str(value)] if value is not None else []
    words += ["--withhold-rewards"] * options.withhold_rewards + ["--link-data"] * options.link_data
    words += ["--hours", f"{budget.hours:g}"]
    extra = budget.hours * (budget.wall_factor - 1)
    words += ["--wait-hours", f"{extra:g}"] if extra > 0 else []
    words += ["--model-dollars", f"{budget.task_dollars:g}"] if budget.task_dollars is not None else []
    model = plan.chat_model
    return words + (model.words() if model is not None and task.model is not None and not task.stand_in else [])


def session_of(run: Path) -> Path | None:
    """Return the directory of a run's session: of several the last with attempts, or the last; None without any."""
    sessions = sorted(path.parent for path in (run / SERVER / SESSIONS).glob(f"*/{SESSION}"))
    scored = [path for path in sessions if (path / ATTEMPTS).is_file()]
    return max(scored or sessions, default=None)


def measured(run: Path, task: TaskRecord) -> dict[str, Any]:
    """Return the fields of a run's record that the logs of its session tell; none of them before it has one."""
    session = session_of(run)
    if session is None:
        return {}
    anchors = (float(task.anchors["starting"]), float(task.anchors["reference"])) if task.anchors else None
    final = AttemptLog(session / ATTEMPTS).final(task.aggregation, anchors)
    fields = {"session": session.name, "attempts": final.attempts, "valid": final.valid}
    fields |= {"raw": final.raw, "reward": final.reward}
    if task.model is not None and not task.stand_in:
        record = _record(session)
        known = [record.get(name) for name in ("model_dollars", "scoring_model_dollars")]
        fields["task_dollars"] = sum(cost for cost in known if cost is not None)
    return fields


def working_s(run: Path, wall_s: float, began: str | None = None) -> float:
    """Return the working time of a run of which ``wall_s`` seconds are over: without waits of its agent and its server.

    The server tells in the session's record, every half minute, how long it has made the session wait. Of what the
    agent says that it waited counts what lies between the beginning of the run and now, but for its scorings.

    Args:
        run: its directory.
        wall_s: seconds.
        began: when the run began, in ISO 8601; None for no bound.
    """
    session = session_of(run)
    waited = _record(session).get("waited_s") if session is not None else None
    waited_s = waited if isinstance(waited, int | float) else 0.0
    waits = common(read_waits(run / WAITS), [Interval(seconds_since_1970(began or "") or 0.0, time.time())])
    if waits and session is not None:
        waits = without(waits, scorings(AttemptLog(session / ATTEMPTS).read().attempts))
    return max(0.0, wall_s - waited_s - total_s(waits))


def end_session(run: Path) -> None:
    """End a run's session, whose server has ended, and remove what only a server needs."""
    session = session_of(run)
    if session is not None and _record(session).get("state") != "ended":
        words = [sys.executable, "-m", "re_bench.cli", "sessions", "end", session.name, "--state", str(run / SERVER)]
        with Child(words, run / SERVER_LOG, None, os.environ) as program, suppress(subprocess.TimeoutExpired):
            program.process.wait(_END_S)
    shutil.rmtree(run / SERVER / _TEMPLATES, ignore_errors=True)


def _record(session: Path) -> dict[str, Any]:
    try:
        return json_object((session / SESSION).read_bytes()) or {}
    except OSError:
        return {}
