"""What sessions leave for the operator: transcripts, metrics, and what the models of their tasks cost."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from re_bench_server.metrics import Metrics
from re_bench_server.transcripts import FILE, VERSION, Transcript, TranscriptWriter, utc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_server.responses import ToolResponse
    from re_bench_server.session import Session
    from re_bench_server.settings import Settings

_MIB = 1 << 20
_TOLD_SETTINGS = (
    "max_attempts", "hours", "command_s", "longest_command_s", "disk_mib", "model_dollars", "withhold_rewards",
    "bash_reward",
)  # fmt: skip


@cache
def _versions() -> dict[str, str]:
    """Return the versions of what a transcript depends on."""
    packages = {name: version(name) for name in ("re-bench-server", "openreward")}
    return packages | {"python": platform.python_version()}


class Recorder:
    """Records what the sessions of a server do. Its methods are called by one event loop."""

    def __init__(self, settings: Settings, sandbox: str) -> None:
        """Begin with no sessions.

        Args:
            settings: the server's.
            sandbox: the name of the sandbox backend.
        """
        self.metrics = Metrics(sandbox)
        self._settings, self._sandbox = settings, sandbox
        self._writer = TranscriptWriter()
        self._transcripts: WeakKeyDictionary[Session, Transcript] = WeakKeyDictionary()
        self._counted: WeakKeyDictionary[Session, tuple[float, float]] = WeakKeyDictionary()
        """What of a session's costs is in the metrics: own calls, and those of scorings."""

    def opened(self, session: Session, setup_s: float) -> None:
        """Record that a session begins, or goes on after a restart; its set-up took ``setup_s`` seconds."""
        if session.restored:
            self._write(session, "resumed", {})
        else:
            self.metrics.opened(session.served.id, setup_s)
            self._write(session, "begin", _beginning(session, self._settings, self._sandbox))

    def restored(self, session: Session) -> None:
        """Note that an earlier server began a session: what it has cost until now was counted there."""
        self._counted[session] = _costs(session)

    async def called(
        self, session: Session, tool: str, arguments: Mapping[str, Any], response: ToolResponse, began: float
    ) -> None:
        """Record a call, and add the cost of the model to the metadata of its response.

        Args:
            session: the session.
            tool: the tool's name.
            arguments: its arguments.
            response: what the agent is about to get.
            began: when the call came, by :func:`time.monotonic`.
        """
        await self.refresh_cost(session)
        if session.served.manifest.model is not None:
            response.metadata["model_dollars"] = session.record.model_dollars
        self.metrics.called(session.served.id, tool, response.metadata)
        call = {"tool": tool, "arguments": arguments, "output": response.text, "reward": response.reward}
        call |= {"finished": response.finished, "metadata": response.metadata}
        self._write(session, "call", call | {"seconds": round(time.monotonic() - began, 4)})

    async def refresh_cost(self, session: Session) -> None:
        """Ask for what the model of a session's task has cost."""
        await session.shell.refresh_cost()
        self._count_cost(session)

    def ended(self, session: Session) -> None:
        """Record that a session has ended, or is suspended until the next server; its directory may be gone."""
        self._count_cost(session)
        if session.record.state == "ended":
            self._write(session, "end", {"reason": session.record.reason, "attempts": session.attempts})
        elif session in self._transcripts:
            self._write(session, "suspended", {})

    async def close(self) -> None:
        """Write what is waiting to be written."""
        await self._writer.close()

    def _write(self, session: Session, kind: str, fields: Mapping[str, Any]) -> None:
        if not self._settings.transcripts:
            return
        if session not in self._transcripts:
            limit = self._settings.transcript_mib * _MIB
            self._transcripts[session] = Transcript(session.directory / FILE, limit)
        own, scorings = session.record.model_dollars, session.record.scoring_model_dollars
        elapsed = session.clock.elapsed()
        hours = {"hours_used": elapsed.working_s / 3600, "hours_waited": elapsed.waited_s / 3600}
        used = {name: round(value, 6) for name, value in hours.items()}
        costs = {"model_dollars": own, "scoring_model_dollars": scorings}
        entry = {"kind": kind, "time": utc(), **fields, **used, **costs}
        secrets = (*session.shell.secrets, *filter(None, [self._settings.token]))
        self._writer.append(self._transcripts[session], entry, secrets)

    def _count_cost(self, session: Session) -> None:
        """Count what has been spent since the last time."""
        before, now = self._counted.get(session, (0.0, 0.0)), _costs(session)
        for caller, counted, dollars in zip(("session", "scoring"), before, now, strict=True):
            self.metrics.spent(session.served.id, caller, max(0.0, dollars - counted))
        self._counted[session] = now


def _costs(session: Session) -> tuple[float, float]:
    return session.record.model_dollars or 0.0, session.record.scoring_model_dollars or 0.0


def _beginning(session: Session, settings: Settings, sandbox: str) -> dict[str, Any]:
    served, model = session.served, None
    if served.manifest.model is not None:
        model = {"name": served.manifest.model.name, "stand_in": session.shell.has_stand_in}
    return {
        "version": VERSION,
        "session": session.name,
        "task": served.id,
        "profile": served.profile_name,
        "prompt": session.prompt(),
        "model": model,
        "settings": {name: getattr(settings, name) for name in _TOLD_SETTINGS}
        | {"sandbox": sandbox, "limits": asdict(settings.session_limits(served.limits))},
        "versions": _versions(),
    }
