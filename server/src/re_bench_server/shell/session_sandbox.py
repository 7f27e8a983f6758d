"""The sandbox of a session: the present one, or the next after its end or at the limit of its disk."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from re_bench_server.shell.sandbox import Sandbox, in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from re_bench.sandbox.resource_usage import DiskGrowth
    from re_bench.sandbox.spec import Backend, SandboxSpec

ALL_ENDED = "all processes of the session were ended, and with them the shell"

_END_GRACE_S = 2.0
"""How long the supervisor may take to end all processes over a limit, before the sandbox is ended."""
_VIOLATION_S = 10.0
"""How long a violation lasts: a later one is a new violation."""
_MIB = 1 << 20


class SessionSandbox:
    """Starts the sandbox of a session, and starts it again when it has ended, or has to be read-only."""

    def __init__(
        self, backend: Backend, spec: SandboxSpec, options: Mapping[str, Any], files: Path, growth: DiskGrowth
    ) -> None:
        """Describe the sandbox; :meth:`ensure` starts it.

        Args:
            backend: the sandbox's backend.
            spec: what it shows.
            options: the options of the supervisor.
            files: the directory made by :func:`re_bench_server.shell.guest_files.lay_out`.
            growth: what is written into its directories.
        """
        self.directory = str(options["workspace"])
        """Where the next shell starts."""
        self.notes: list[str] = []
        """What the next output of the shell has to say of earlier events."""
        self.growth = growth
        self._backend, self._spec, self._options, self._files = backend, spec, dict(options), files
        self._sandbox: Sandbox | None = None
        self._lock = asyncio.Lock()
        self._running = 0
        self._full = False
        self._read_only = False
        self._violation_time = 0.0
        self._closed = ""

    async def ensure(self) -> Sandbox | None:
        """Return a sandbox that can run something, the present one or a new one; None after :meth:`close`.

        Raises:
            ReBenchError: if it does not start.
        """
        async with self._lock:
            if self._closed:
                return None
            if self._full:
                await self._check_disk()
            if self._sandbox is not None and not self._sandbox.alive:
                reason = self._sandbox.end_reason or ALL_ENDED
                self.notes.append(f"before this command: {reason}; this is a new shell in {self.directory}")
                await self._stop()
            return self._sandbox or await self._start()

    @contextmanager
    def busy(self, sandbox: Sandbox) -> Iterator[None]:
        """Say that something runs in the sandbox, so that its limits are checked more often."""
        self._running += 1
        sandbox.set_busy(busy=True)
        try:
            yield
        finally:
            self._running -= 1
            sandbox.set_busy(busy=self._running > 0)

    async def take_lost(self, sandbox: Sandbox) -> str:
        """Return why a sandbox has ended, whose command is told so."""
        async with self._lock:
            if self._sandbox is sandbox:  # else a program has a new one already
                await self._stop()
        return sandbox.end_reason or ALL_ENDED

    async def close(self, reason: str) -> None:
        """End everything, for good."""
        self._closed = reason
        if self._sandbox is not None:
            self._sandbox.end(reason)
        async with self._lock:
            await self._stop(reason)

    async def _check_disk(self) -> None:
        """Start a new sandbox if the workspace has become too full, or has room again."""
        try:
            self._full = await in_thread(self.growth.is_over_now, self._spec.limits.disk_mib * _MIB)
        except OSError:  # it holds directories that an ordinary user's server cannot read
            self._full = True
        if self._read_only and not self._full and self._running:
            self._full = True  # what runs goes on, and the next one looks again
        elif self._full != self._read_only:
            await self._stop()
            self.notes.append(
                "workspace and home are full: files can be removed but not written; this is a new shell"
                if self._full
                else "there is room again; this is a new shell"
            )

    async def _start(self) -> Sandbox:
        self._read_only = self._full
        limits = self._spec.limits
        if self._read_only:  # nothing can be written, so that the quota holds however often one tries
            limits = replace(limits, file_mib=0, disk_mib=2 * limits.disk_mib)
        spec, options = replace(self._spec, limits=limits), self._options | {"directory": self.directory}
        self._sandbox = sandbox = await Sandbox.start(self._backend, spec, self._files, options["guest_files"], options)
        sandbox.watch(limits, self.growth, partial(self._on_violation, sandbox))
        return sandbox

    async def _stop(self, reason: str = "") -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.shield(sandbox.end(reason))

    def _on_violation(self, sandbox: Sandbox, violation: str, disk: bool) -> None:
        """End what runs in a sandbox over a limit; the whole sandbox, if the supervisor does not do so."""
        if sandbox is not self._sandbox:
            return
        sandbox.violation = violation
        self._full = self._full or disk
        now = time.monotonic()
        elapsed = now - self._violation_time
        if elapsed > _VIOLATION_S:
            self._violation_time = now
            sandbox.request({"end": violation})
        elif elapsed > _END_GRACE_S:
            sandbox.end(f"{violation}; all processes of the session were ended")
