"""A session's shell: a bash in a sandbox of its own, whose state lasts from one command to the next."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.sandbox.bubblewrap import Bubblewrap, private_user
from re_bench.sandbox.resource_usage import DiskGrowth
from re_bench.sandbox.spec import SandboxSpec
from re_bench_environment.shell.guest_files import hand_over, lay_out, write_command, write_etc
from re_bench_environment.shell.protocol import Output, Reply, append_notes, refusal
from re_bench_environment.shell.sandbox import Sandbox, in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench.limits import Limits
    from re_bench.sandbox.spec import Backend

WORKSPACE = "/workspace"
"""The path of the workspace inside."""
HOME = "/home/agent"
"""The path of the home directory inside: what programs keep there is no part of a submission."""

_GUEST_FILES = "/run/shell"
_OUTPUTS = "/tmp/outputs"  # noqa: S108 - the sandbox's private /tmp
_GRACE_S = 10.0
"""How long the supervisor may take beyond a command's time before everything is ended."""
_END_GRACE_S = 2.0
"""How long the supervisor may take to end all processes over a limit, before the sandbox is ended."""
_VIOLATION_S = 10.0
"""How long a violation lasts: a later one is a new violation."""
_MAX_TIMEOUT_S = 1e6
_MIB = 1 << 20
_NOBODY = 65534
_ALL_ENDED = "all processes of the session were ended, and with them the shell"
_NO_REPLY = "the sandbox did not answer and was ended, with all its processes"
_CLOSED = "the session has ended"


class Shell:
    """The shell of one session. Its methods are called by one event loop; :meth:`close` may be called at any time."""

    def __init__(self, backend: Backend, spec: SandboxSpec, options: Mapping[str, Any], scratch: Path) -> None:
        """Describe a shell; :meth:`open` makes one."""
        self._backend = backend
        self._spec = spec
        self._options = dict(options)
        self._scratch = scratch
        self._directory = str(options["workspace"])
        self._growth = DiskGrowth(())
        self._sandbox: Sandbox | None = None
        self._lock = asyncio.Lock()
        self._number = 0
        self._abandoned = False
        """Whether the caller of the last command was cancelled before its reply."""
        self._notes: list[str] = []
        self._full = False
        self._read_only = False
        self._violation_time = 0.0
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        backend: Backend,
        workspace: Path,
        home: Path,
        *,
        limits: Limits,
        environment: Mapping[str, str],
        also: Mapping[str, Path] | None = None,
        hidden: Sequence[Path] = (),
        gpu: str | None = None,
        services: Sequence[Sequence[str]] = (),
        host_network: bool = False,
        scratch: Path | None = None,
        disk_before: int | None = None,
    ) -> Shell:
        """Open a shell in a sandbox, with its workspace at ``/workspace`` and its home directory at ``/home/agent``.

        Args:
            backend: the sandbox's backend; with the backend ``none`` both have their own paths.
            workspace: a directory of the session's own. Root makes the sandbox's user its owner; with an engine for
                containers everybody may write there: nobody else should be able to enter the directory above.
            home: another one, for what programs keep in ``$HOME``; it is made unless it is there.
            limits: of all that runs in the session; ``wall_s`` is for the backend alone. ``output_kib`` is what is
                kept of the text of each command.
            environment: variables beside the usual ones.
            also: files, sockets and directories to show, by their path inside; not below ``/run/shell``.
            hidden: directories that must not show.
            gpu: the UUID of the GPU that it may use.
            services: commands that run beside the shell, such as a port forwarder. Each prints a line when it is
                ready, and is started again, before the next command, when it has ended.
            host_network: whether the sandbox shares the machine's network.
            scratch: an existing directory for our files, which nobody else should be able to enter; a temporary one
                is made by default.
            disk_before: bytes of the workspace from which its growth counts, if not those that it has now.

        Raises:
            ReBenchError: if the sandbox does not start.
        """
        scratch = Path(tempfile.mkdtemp(prefix="re-bench-shell-", dir=scratch))
        try:
            sandboxed, bubblewrap = backend.name != "none", isinstance(backend, Bubblewrap)
            user = private_user() if bubblewrap else None
            files = scratch / "shown"
            await in_thread(lay_out, files)
            await in_thread(partial(home.mkdir, mode=0o700, exist_ok=True))
            inside = (WORKSPACE, HOME, _GUEST_FILES) if sandboxed else (str(workspace), str(home), str(files))
            start, home_inside, guest_files = inside
            etc = write_etc(files, user or _NOBODY, home_inside) if bubblewrap else {}
            if sandboxed and (user is not None or not bubblewrap):
                for directory in (workspace, home):
                    await in_thread(hand_over, directory, user)
            spec = SandboxSpec(
                read_only={**etc, guest_files: files, **(also or {})},
                writable={start: workspace, home_inside: home},
                environment={
                    "HOME": home_inside,
                    "LOGNAME": "agent",
                    "SHELL": "/bin/bash",
                    "TERM": "dumb",
                    **environment,
                },
                directory="/",  # the supervisor, which is the right user, changes to the shell's directory
                limits=limits,
                gpu=gpu,
                hidden=hidden,
                host_network=host_network,
                user=user,
            )
            options = {
                "guest_files": guest_files,
                "workspace": start,
                "processes": limits.processes,
                "output_bytes": limits.output_kib << 10,
                "output_directory": _OUTPUTS if sandboxed else f"{scratch}/outputs",
                "sandboxed": sandboxed,
                "services": [list(service) for service in services],
            }
            shell = cls(backend, spec, options, scratch)
            shell._growth = await in_thread(DiskGrowth, [workspace, home], disk_before)
            await shell._start()
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return shell

    @property
    def disk_before(self) -> int:
        """Bytes of the workspace from which its growth counts."""
        return self._growth.before

    async def run(self, command: str, timeout_s: float) -> Output:
        """Run a command, after those that were requested before.

        Directory, variables, functions, options and background processes stay for the next one. When the time is up,
        all that the command has started is ended, in the background too, and the shell is kept. A cancelled call does
        the same.

        Args:
            command: any text that bash reads, without NUL.
            timeout_s: seconds that it may take.

        Raises:
            ReBenchError: if there is no sandbox for it.
        """
        if reason := refusal(command, timeout_s):
            return Output.not_run(reason)
        async with self._lock:
            if self._closing is None:
                return await self._run(command, min(timeout_s, _MAX_TIMEOUT_S))
        return Output.not_run(_CLOSED)

    async def close(self) -> None:
        """End everything, also a running command; nothing is left then."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.end(_CLOSED)
        async with self._lock:
            await self._stop(_CLOSED)
            await in_thread(shutil.rmtree, self._scratch, True)  # noqa: FBT003 - ignore_errors

    async def _run(self, command: str, timeout_s: float) -> Output:
        sandbox = await self._ensure_sandbox()
        self._number += 1
        try:
            write_command(self._scratch / "shown", command)
        except OSError as error:
            raise ReBenchError(f"the command cannot be handed over: {error}") from None
        started = time.monotonic()
        sandbox.set_busy(busy=True)
        self._abandoned = True
        sandbox.request({"run": self._number, "timeout_s": timeout_s})
        try:
            message = await sandbox.reply(timeout_s + _GRACE_S)
        except TimeoutError:
            await sandbox.end(_NO_REPLY)
            message = None
        except asyncio.CancelledError:
            sandbox.request({"interrupt": self._number})
            raise
        finally:
            sandbox.set_busy(busy=False)
        self._abandoned = False
        seconds = time.monotonic() - started
        if message is None:
            return await self._lost(sandbox, seconds, timed_out=seconds > timeout_s)
        reply = Reply.parse(message)
        self._directory = reply.directory or self._directory
        return reply.output(self._take_notes(), seconds)

    async def _lost(self, sandbox: Sandbox, seconds: float, *, timed_out: bool) -> Output:
        """Return the output of a command during which the sandbox ended."""
        await self._stop("")
        restart = "" if self._closing else f"; the next command has a new shell in {self._directory}"
        notes = [*self._take_notes(), f"{sandbox.end_reason or _ALL_ENDED}{restart}"]
        return Output(append_notes("", notes), None, None, timed_out, seconds)

    def _take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    async def _ensure_sandbox(self) -> Sandbox:
        """Return a sandbox that can run a command: the present one, or a new one."""
        if self._abandoned and self._sandbox is not None:
            await self._wait_for_abandoned(self._sandbox)
        self._abandoned = False
        if self._full:
            await self._check_disk()
        if self._sandbox is not None and not self._sandbox.alive:
            reason = self._sandbox.end_reason or _ALL_ENDED
            self._notes.append(f"before this command: {reason}; this is a new shell in {self._directory}")
            await self._stop("")
        return self._sandbox or await self._start()

    async def _wait_for_abandoned(self, sandbox: Sandbox) -> None:
        """Wait for the end of a command whose caller was cancelled."""
        try:
            message = await sandbox.reply(_GRACE_S)
        except TimeoutError:
            await sandbox.end(_NO_REPLY)
        else:
            if message is not None:
                self._notes += Reply.parse(message).notes

    async def _check_disk(self) -> None:
        """Start a new sandbox if the workspace has become too full, or has room again."""
        try:
            self._full = await in_thread(self._growth.is_over_now, self._spec.limits.disk_mib * _MIB)
        except OSError:  # it holds directories that an ordinary user's server cannot read
            self._full = True
        if self._full != self._read_only:
            await self._stop("")
            self._notes.append(
                "workspace and home are full: files can be removed but not written; this is a new shell"
                if self._full
                else "there is room again; this is a new shell"
            )

    async def _start(self) -> Sandbox:
        self._read_only = self._full
        limits = self._spec.limits
        if self._read_only:  # nothing can be written, so that the quota holds however often one tries
            limits = replace(limits, file_mib=0, disk_mib=2 * limits.disk_mib)
        spec, options = replace(self._spec, limits=limits), self._options | {"directory": self._directory}
        self._sandbox = sandbox = await Sandbox.start(
            self._backend, spec, self._scratch / "shown", options["guest_files"], options
        )
        sandbox.watch(limits, self._growth, partial(self._on_violation, sandbox))
        return sandbox

    async def _stop(self, reason: str) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.shield(sandbox.end(reason))

    def _on_violation(self, sandbox: Sandbox, violation: str, disk: bool) -> None:
        """End what runs in a sandbox over a limit; the whole sandbox, if the supervisor does not do so."""
        if sandbox is not self._sandbox:
            return
        self._full = self._full or disk
        now = time.monotonic()
        elapsed = now - self._violation_time
        if elapsed > _VIOLATION_S:
            self._violation_time = now
            sandbox.request({"end": violation})
        elif elapsed > _END_GRACE_S:
            sandbox.end(f"{violation}; all processes of the session were ended")
