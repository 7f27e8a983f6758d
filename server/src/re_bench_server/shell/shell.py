"""A session's shell: a bash in a sandbox of its own, whose state lasts from one command to the next."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Unpack

from re_bench.errors import ReBenchError
from re_bench.guest.truncate import HeadTail
from re_bench.sandbox.bubblewrap import Bubblewrap, private_user
from re_bench.sandbox.resource_usage import DiskGrowth
from re_bench.sandbox.spec import SandboxSpec
from re_bench_server.shell.guest_files import hand_over, lay_out, write_command, write_etc, write_file
from re_bench_server.shell.program import OUTPUT_BYTES, ProgramOptions, ProgramOutput
from re_bench_server.shell.protocol import Output, append_notes, clean_path, command_refusal, notes_in
from re_bench_server.shell.sandbox import SessionSandbox, in_thread
from re_bench_server.state_dir import remove_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from re_bench.limits import Limits
    from re_bench.sandbox.spec import Backend
    from re_bench_server.shell.sandbox import Call, Sandbox

WORKSPACE = "/workspace"
"""The path of the workspace inside."""
HOME = "/home/agent"
"""The path of the home directory inside: what programs keep there is no part of a submission."""

_TEMPORARY = "/var/tmp"  # noqa: S108 - what stays when the sandbox is started again
_GUEST_FILES = "/run/shell"
_OUTPUTS = "/tmp/outputs"  # noqa: S108 - the sandbox's private /tmp
_MAX_TIMEOUT_S = 1e6
_MAX_PROGRAMS = 64
_NOBODY = 65534
_CANNOT_RUN = 126
_ALL_ENDED = "all processes of the sandbox were ended"
_CLOSED = "the session has ended"


class Shell:
    """The shell of one session. Its methods are called by one event loop; :meth:`close` may be called at any time."""

    def __init__(self, sandbox: SessionSandbox, workspace: str, guest_files: str, scratch: Path) -> None:
        """Use a sandbox that has not been started; :meth:`open` makes both.

        Args:
            sandbox: the session's.
            workspace: the path of the workspace inside.
            guest_files: the path of our files inside.
            scratch: the directory of our files, of which ``shown`` is shown inside.
        """
        self._sandbox, self._workspace, self._guest_files, self._scratch = sandbox, workspace, guest_files, scratch
        self._lock = asyncio.Lock()
        self._slots = asyncio.Semaphore(_MAX_PROGRAMS)
        self._files = 0
        self._last: Call | None = None
        """The command that runs, or the last one if its caller was cancelled."""
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
            files, temporary = scratch / "shown", scratch / "var-tmp"
            await in_thread(lay_out, files)
            await in_thread(partial(home.mkdir, mode=0o700, exist_ok=True))
            await in_thread(_make_temporary, temporary)
            inside = (WORKSPACE, HOME, _GUEST_FILES) if sandboxed else (str(workspace), str(home), str(files))
            start, home_inside, guest_files = inside
            etc = write_etc(files, user or _NOBODY, home_inside) if bubblewrap else {}
            if sandboxed and (user is not None or not bubblewrap):
                for directory in (workspace, home):
                    await in_thread(hand_over, directory, user)
            spec = SandboxSpec(
                read_only={**etc, guest_files: files, **(also or {})},
                writable={start: workspace, home_inside: home, **({_TEMPORARY: temporary} if sandboxed else {})},
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
                "output_bytes": limits.output_kib << 10,
                "output_directory": _OUTPUTS if sandboxed else f"{scratch}/outputs",
                "services": [list(service) for service in services],
            }
            growth = await in_thread(DiskGrowth, [workspace, home, temporary], disk_before)
            shell = cls(SessionSandbox(backend, spec, options, files, growth), start, guest_files, scratch)
            await shell._sandbox.ensure()
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return shell

    @property
    def disk_before(self) -> int:
        """Bytes of the workspace from which its growth counts."""
        return self._sandbox.growth.before

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
        if reason := command_refusal(command, timeout_s):
            return Output.not_run(reason)
        async with self._lock:
            if self._closing is None:
                return await self._run(command, min(timeout_s, _MAX_TIMEOUT_S))
        return Output.not_run(_CLOSED)

    async def execute(self, command: Sequence[str], **options: Unpack[ProgramOptions]) -> ProgramOutput:
        """Run a program beside the shell, and beside other programs, in the same sandbox.

        It ends when the program has ended. What it has left in the background goes on, and what that writes later is
        lost; if it has kept stdout or stderr open, what comes within a second is waited for. When the time is up, all
        that the program has started is ended, and the rest goes on. A cancelled call does the same.

        Args:
            command: the program, a path or a name that is looked up in the ``PATH`` inside, and its arguments.
            options: see :class:`ProgramOptions`.

        Raises:
            ReBenchError: if there is no sandbox for it.
        """
        if not command:
            return ProgramOutput(_CANNOT_RUN, b"", b"", error="the command is empty")
        timeout_s, keep = options.get("timeout_s"), options.get("output_bytes", OUTPUT_BYTES)
        timeout_s = None if timeout_s is None else min(timeout_s, _MAX_TIMEOUT_S)
        request = {
            "execute": list(command),
            "directory": str(PurePosixPath(self._workspace, options.get("directory") or "")),
            "environment": dict(options.get("environment", {})),
            "timeout_s": timeout_s,
        }
        async with self._slots:
            sandbox = await self._sandbox.ensure()
            if sandbox is None:
                return ProgramOutput(None, b"", b"", error=_CLOSED, ran=False)
            async with self._stdin_file(options.get("stdin", b"")) as stdin:
                started = time.monotonic()
                outputs = {"stdout": HeadTail(keep), "stderr": HeadTail(keep)}
                number, call = sandbox.call({**request, "stdin": stdin}, outputs)
                reply = await sandbox.wait_for(number, call, timeout_s)
                seconds = time.monotonic() - started
        if reply is None:
            reply = {"timed_out": timeout_s is not None and seconds > timeout_s}
        output = replace(ProgramOutput.parse(reply, outputs, keep), seconds=seconds)
        if output.timed_out:
            return replace(output, status=None)
        if output.status is None:
            return replace(output, error=sandbox.end_reason or sandbox.violation or _ALL_ENDED)
        return output

    @asynccontextmanager
    async def _stdin_file(self, data: bytes) -> AsyncIterator[str]:
        """Return the path inside of a file with the stdin of a program; the empty string for none."""
        self._files += 1
        name = f"stdin-{self._files}" if data else ""
        file = self._scratch / "shown" / name
        try:
            if data:
                await in_thread(write_file, file, data)
            yield f"{self._guest_files}/{name}" if data else ""
        finally:
            if data:
                file.unlink(missing_ok=True)

    async def close(self) -> None:
        """End everything, also a running command; nothing is left then."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._sandbox.close(_CLOSED)
        async with self._lock:
            await in_thread(remove_tree, self._scratch)

    async def _run(self, command: str, timeout_s: float) -> Output:
        if self._last is not None:  # its caller was cancelled: it ends soon, or its sandbox does
            await asyncio.wait({self._last.reply})
            if message := self._last.reply.result():
                self._sandbox.notes += notes_in(message)
        sandbox = await self._sandbox.ensure()
        if sandbox is None:
            return Output.not_run(_CLOSED)
        try:
            write_command(self._scratch / "shown", command)
        except OSError as error:
            raise ReBenchError(f"the command cannot be written to a file: {error}") from None
        started = time.monotonic()
        number, self._last = sandbox.call({"run": True, "timeout_s": timeout_s})
        message = await sandbox.wait_for(number, self._last, timeout_s)
        self._last = None
        seconds = time.monotonic() - started
        if message is None:
            return await self._lost(sandbox, seconds, timed_out=seconds > timeout_s)
        self._sandbox.directory = clean_path(message.get("directory")) or self._sandbox.directory
        return Output.parse(message, self._take_notes(), seconds)

    async def _lost(self, sandbox: Sandbox, seconds: float, *, timed_out: bool) -> Output:
        """Return the output of a command during which the sandbox ended."""
        reason = await self._sandbox.take_lost(sandbox)
        restart = "" if self._closing else f"; the next command has a new shell in {self._sandbox.directory}"
        notes = [*self._take_notes(), f"{reason}{restart}"]
        return Output(append_notes("", notes), None, None, timed_out, seconds)

    def _take_notes(self) -> list[str]:
        notes, self._sandbox.notes = self._sandbox.notes, []
        return notes


def _make_temporary(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o1777)
