"""What all sessions of a server share: its settings, tasks and sandbox, its queues and gateways."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu import state as gpu_state
from re_bench.processes import StoppedError, request_stop
from re_bench.sandbox import open_backend
from re_bench.task.hidden_paths import hidden_directories
from re_bench.task.workspace import lay_out
from re_bench_environment.leftovers import State
from re_bench_environment.models import Models
from re_bench_environment.offers import Offer, find_offers
from re_bench_environment.scoring import Scorings
from re_bench_environment.turns import GpuGate, Turns

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench_environment.session import Session
    from re_bench_environment.settings import Settings

__all__ = ["FullError", "Service"]

_LAYING_OUT = 4


class FullError(UsageError):
    """The server has as many sessions as it may have."""


@dataclass
class Service:
    """A server's common part."""

    settings: Settings
    began: float = field(default_factory=time.monotonic)
    stopping: bool = False

    def __post_init__(self) -> None:
        """Find the tasks, try the sandbox, and take the directory of the sessions.

        Raises:
            UsageError: if one of these cannot be had.
        """
        self.offers = find_offers(self.settings.profile)
        self.backend = open_backend(self.settings.sandbox)
        self.state = State(self.settings.state)
        self.models = Models(self.state.directory / "models")
        self.turns, self.gpu_gate = Turns(self.settings.scorings), GpuGate()
        self.scorings = Scorings(self.turns, self.gpu_gate, self.settings.sandbox, self.settings.disk_mib)
        self.sessions: dict[str, Session] = {}
        self._admitting = threading.Lock()
        self._threads = ThreadPoolExecutor(_LAYING_OUT, thread_name_prefix="lay-out")
        self._hidden: dict[str, list[Path]] = {}
        self._gpu: str | None = None

    def admit(self, session: Session) -> None:
        """Count a new session.

        Raises:
            FullError: if there are as many as there may be.
        """
        most = self.settings.max_sessions
        with self._admitting:  # the SDK begins sessions in threads
            if len(self.sessions) >= most:
                raise FullError(
                    f"this server holds {most} sessions, its most (--max-sessions); try again when one has ended"
                )
            self.sessions[session.name] = session

    def dismiss(self, session: Session) -> None:
        """Count a session no more."""
        self.sessions.pop(session.name, None)

    async def lay_out(self, offer: Offer, target: Path) -> None:
        """Lay out a workspace, which prepares what it needs.

        Raises:
            ReBenchError: if that fails.
        """
        try:
            await self._threaded(partial(lay_out, offer.task, target, profile=offer.profile_name))
        except StoppedError:
            raise ReBenchError("the server is ending") from None

    async def hidden(self, offer: Offer) -> list[Path]:
        """Return what no sandbox of a task may show."""
        if offer.id not in self._hidden:
            found = await self._threaded(partial(hidden_directories, offer.task.directory))
            self._hidden[offer.id] = [*found, self.state.directory]
        return self._hidden[offer.id]

    async def gpu(self, offer: Offer) -> str | None:
        """Return the UUID of the GPU that a task's commands may use, if its profile has one."""
        if offer.profile.device != "cuda":
            return None
        if self._gpu is None:
            self._gpu = (await self._threaded(gpu_state.identify)).uuid
        return self._gpu

    async def close(self) -> None:
        """End all sessions and everything that they share."""
        self.stopping = True
        with request_stop():
            closing = [session.close() for session in list(self.sessions.values())]
            failed = [error for error in await asyncio.gather(*closing, return_exceptions=True) if error is not None]
            await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        await self.models.close()
        self.state.close()
        if failed:
            raise failed[0]

    async def _threaded(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)
