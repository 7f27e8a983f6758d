"""What a server says of itself to its operator, as JSON and as a table."""

from __future__ import annotations

import resource
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from re_bench.report.tables import number, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_environment.service import Service
    from re_bench_environment.session import Session

__all__ = ["health", "health_in_words"]

_HEADER = ("session", "task", "profile", "open", "doing", "for", "attempts", "best reward")


def health(service: Service) -> dict[str, Any]:
    """Return the state of a server; nothing in it gives access to a session."""
    scorings, gpu = service.turns, service.gpu_gate.scorings
    return {
        "status": "stopping" if service.stopping else "ok",
        "version": version("re-bench-environment"),
        "sandbox": service.backend.name,
        "uptime_s": round(time.monotonic() - service.began, 1),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "max_sessions": service.settings.max_sessions,
        "tasks": {offer.id: offer.profile_name for offer in service.offers.by_id.values()},
        "not_served": dict(service.offers.refused),
        "scorings": {"running": scorings.running, "waiting": scorings.waiting},
        "gpu": {"running": gpu.running, "waiting": gpu.waiting},
        "sessions": [_session(session) for session in service.sessions.values()],
    }


def _session(session: Session) -> dict[str, Any]:
    now = time.monotonic()
    # A score that agents are not told is not told here either before the end.
    told = session.offer.manifest.show_score or session.doing == "finished"
    return {
        "name": session.name,
        "task": session.offer.id,
        "profile": session.offer.profile_name,
        "open_s": round(now - session.began, 1),
        "doing": session.doing,
        "doing_s": round(now - session.since, 1),
        "attempts": session.attempts,
        "best_reward": session.best if told else None,
    }


def health_in_words(said: Mapping[str, Any]) -> str:
    """Return what a server says of itself as a page for a terminal."""
    if "sessions" not in said:
        return f"{said['status']}; give the server's token with --token-file to see more"
    sessions = said["sessions"]
    lines = [
        f"{said['status']}, up {_span(said['uptime_s'])}, sandbox {said['sandbox']}, {said['memory_mib']} MiB at most",
        f"{len(sessions)} of {said['max_sessions']} sessions",
        f"scorings: {_queue(said['scorings'])}; on the GPU: {_queue(said['gpu'])}",
        "tasks: " + ", ".join(f"{name} ({profile})" for name, profile in said["tasks"].items()),
        *(f"not served: {name}: {why}" for name, why in said["not_served"].items()),
    ]
    if sessions:
        lines += ["", table(_HEADER, [_row(session) for session in sessions])]
    return "\n".join(lines)


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
    ]


def _queue(said: Mapping[str, int]) -> str:
    return f"{said['running']} running, {said['waiting']} waiting"


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
