"""The health of a server for its operator, as JSON and as text."""

from __future__ import annotations

import resource
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from re_bench.tables import dollars, number, table
from re_bench_server.preparation import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_server.preparation import Preparation
    from re_bench_server.registry import SessionRegistry
    from re_bench_server.session import Session

_HEADER = ("session", "task", "profile", "open", "doing", "for", "attempts", "best reward", "model")


def health(registry: SessionRegistry) -> dict[str, Any]:
    """Return the state of a server; nothing in it gives access to a session."""
    app = registry.app
    scorings, gpu = app.scoring_queue, app.gpu_gate.scorings
    return {
        "status": _status(registry),
        "version": version("re-bench-server"),
        "sandbox": app.backend.name,
        "network": app.settings.network.record(),
        "uptime_s": round(time.monotonic() - app.started, 1),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "max_sessions": app.settings.max_sessions,
        "tasks": {name: _task(preparation) for name, preparation in app.preparations.by_id.items()},
        "not_served": dict(app.catalog.not_served),
        "scorings": {"running": scorings.running, "waiting": scorings.waiting},
        "gpu": {"running": gpu.running, "waiting": gpu.waiting},
        "gpus": app.gpus.record() if app.gpus else None,
        "sessions": [_session(session) for session in list(registry.sessions.values())],
    }


def is_ready(registry: SessionRegistry) -> bool:
    """Tell whether sessions can be created, and none of them would wait for the preparation of its task."""
    return registry.app.preparations.ready and not registry.draining


def _status(registry: SessionRegistry) -> str:
    if registry.draining:
        return "stopping" if registry.app.stopping else "draining"
    preparations = registry.app.preparations.by_id.values()
    return "preparing" if any(preparation.state == State.PREPARING for preparation in preparations) else "ok"


def _task(preparation: Preparation) -> dict[str, Any]:
    reason = None if preparation.error is None else str(preparation.error)
    return {"profile": preparation.served.profile_name, "state": preparation.state, "reason": reason}


def _session(session: Session) -> dict[str, Any]:
    now = time.monotonic()
    # A score that is hidden from agents is hidden here too before the end.
    shown = session.served.manifest.show_score or session.activity == "finished"
    return {
        "name": session.name,
        "task": session.served.id,
        "profile": session.served.profile_name,
        "open_s": round(now - session.clock.started, 1),
        "gpu": session.record.gpu,
        "doing": session.activity,
        "doing_s": round(now - session.activity_since, 1),
        "attempts": session.attempts,
        "best_reward": session.best_reward if shown else None,
        "model_dollars": session.record.model_dollars,
        "scoring_model_dollars": session.record.scoring_model_dollars,
    }


def describe_health(state: Mapping[str, Any]) -> str:
    """Return what :func:`health` returned as text for a terminal."""
    if "sessions" not in state:
        return f"{state['status']}; give the server's token with --token-file to see more"
    sessions, memory = state["sessions"], f"{state['memory_mib']} MiB at most"
    lines = [
        f"{state['status']}, up {_span(state['uptime_s'])}, sandbox {state['sandbox']}, {memory}",
        f"network of sessions: {_network(state['network'])}",
        f"{len(sessions)} of {state['max_sessions']} sessions",
        f"scorings: {_queue(state['scorings'])}; on the GPU: {_queue(state['gpu'])}",
        *_gpu_lines(state["gpus"]),
        *(_task_line(name, task) for name, task in state["tasks"].items()),
        *(f"not served: {name}: {reason}" for name, reason in state["not_served"].items()),
    ]
    if sessions:
        lines += ["", table(_HEADER, [_row(session) for session in sessions])]
    return "\n".join(lines)


def _task_line(name: str, task: Mapping[str, Any]) -> str:
    reason = f": {task['reason']}" if task["reason"] else ""
    return f"{task['state']}: {name} ({task['profile']}){reason}"


def _gpu_lines(gpus: Mapping[str, Any] | None) -> list[str]:
    if gpus is None:
        return []
    sessions = ", ".join(f"{uuid} ({number} open)" for uuid, number in gpus["sessions"].items())
    return [f"GPU of scorings: {gpus['scoring']}; of sessions: {sessions}"]


def _row(session: Mapping[str, Any]) -> list[str]:
    return [
        session["name"],
        session["task"],
        session["profile"],
        _span(session["open_s"]),
        session["doing"],
        _span(session["doing_s"]),
        str(session["attempts"]),
        number(session["best_reward"]),
        dollars(session["model_dollars"]),
    ]


def _network(network: Mapping[str, Any]) -> str:
    allowed = f" to {', '.join(network['allow'])}" if "allow" in network else ""
    return f"{network['mode']}{allowed}"


def _queue(queue: Mapping[str, int]) -> str:
    return f"{queue['running']} running, {queue['waiting']} waiting"


def _span(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
