"""A session's shell: a bash in a sandbox of its own, whose state lasts from one command to the next."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.sandbox import resource_usage
from re_bench.sandbox.bubblewrap import Bubblewrap, private_user
from re_bench.sandbox.spec import SandboxSpec
from re_bench_environment import bundle
from re_bench_environment.replies import Reply
from re_bench_environment.sandbox import THREADS, Sandbox
from re_bench_environment.watch import DISK, MEMORY, Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from re_bench.limits import Limits
    from re_bench.sandbox.spec import Backend

    Result = TypeVar("Result")

__all__ = ["HOME", "LONGEST_COMMAND", "Output", "Shell"]

HOME = "/home/agent"
"""Where the workspace is inside."""
LONGEST_COMMAND = 4 << 20
"""Bytes that a command may have."""

_OURS = "/run/shell"
_OUTPUTS = "/tmp/outputs"  # noqa: S108 - the sandbox's private /tmp
_GRACE_S = 10.0
"""How long the supervisor may take beyond a command's time before everything is ended."""
_HEED_S = 2.0
_FORGET_S = 10.0
_LONGEST_S = 1e6
_MIB = 1 << 20
_NOBODY = 65534
_ALL_ENDED = "all processes of the session were ended, and with them the shell"


@dataclass(frozen=True)
class Output:
    """What came of a command."""

    text: str
    """What it wrote to stdout and stderr, in the order in which it came; a long middle is left out. Lines in brackets
    are ours: what happened to the shell, and what background processes wrote since the command before."""
    whole: Path | None
    """The path inside of the file with all of a text whose middle was left out."""
    status: int | None
    """Exit status, 128 and more for a signal; also where the command ended the shell. None if it timed out, was not
    run, or was ended with all else in the sandbox."""
    timed_out: bool
    seconds: float


class Shell:
    """The shell of one session. Its methods are called by one event loop; :meth:`close` may come at any time."""

    def __init__(self, backend: Backend, around: SandboxSpec, options: Mapping[str, Any], scratch: Path) -> None:
        """Describe a shell; :meth:`open` makes one."""
        self._backend = backend
        self._around = around
        self._options = dict(options)
        self._scratch = scratch
        self._directory = str(options["home"])
        self._growth = resource_usage.Growth(())
        self._sandbox: Sandbox | None = None
        self._turn = asyncio.Lock()
        self._number = 0
        self._unanswered = False
        self._notes: list[str] = []
        self._full = False
        self._cramped = False
        self._told = 0.0
        self._watched: list[Watched] = []
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        backend: Backend,
        workspace: Path,
        *,
        limits: Limits,
        environment: Mapping[str, str],
        also: Mapping[str, Path] | None = None,
        hidden: Sequence[Path] = (),
        gpu: str | None = None,
        services: Sequence[Sequence[str]] = (),
        scratch: Path | None = None,
    ) -> Shell:
        """Open a shell in a sandbox, with its workspace at ``/home/agent``.

        Args:
            backend: what holds it; with the backend ``none`` the workspace stays where it is.
            workspace: a directory of the session's own. Root gives it to the sandbox's user, a container's user may
                write there because all may: nobody else should be able to enter the directory above.
            limits: of all that runs in the session; ``wall_s`` is for the backend alone. ``output_kib`` is what is
                kept of the text of each command.
            environment: variables beside the usual ones.
            also: files, sockets and directories to show, by their path inside; not below ``/run/shell``.
            hidden: directories that must not show.
            gpu: the UUID of the GPU that it may use.
            services: commands that run beside the shell, such as the way to the gateway. Each prints a line when it is
                ready, and is started again, before the next command, when it has ended.
            scratch: an existing directory for what we need, which nobody else should be able to enter; a temporary one
                is made by default.

        Raises:
            ReBenchError: if the sandbox does not start.
        """
        scratch = Path(tempfile.mkdtemp(prefix="re-bench-shell-", dir=scratch))
        try:
            contained = backend.name != "none"
            user = private_user() if isinstance(backend, Bubblewrap) else None
            place = scratch / "shown"
            await _in_thread(bundle.lay_out, place)
            home, ours = (HOME, _OURS) if contained else (str(workspace), str(place))
            names = bundle.etc(place, user or _NOBODY, home) if isinstance(backend, Bubblewrap) else {}
            if contained and (user is not None or not isinstance(backend, Bubblewrap)):
                await _in_thread(bundle.hand_over, workspace, user)
            around = SandboxSpec(
                read_only={**names, ours: place, **(also or {})},
                writable={home: workspace},
                environment={"HOME": home, "LOGNAME": "agent", "SHELL": "/bin/bash", "TERM": "dumb", **environment},
                directory="/",  # the supervisor, which is the right user, goes on to where the shell is to be
                limits=limits,
                gpu=gpu,
                hidden=hidden,
                user=user,
            )
            options = {
                "place": ours,
                "home": home,
                "keep": limits.output_kib << 10,
                "outputs": _OUTPUTS if contained else f"{scratch}/outputs",
                "contained": contained,
                "services": [list(service) for service in services],
            }
            shell = cls(backend, around, options, scratch)
            shell._growth = await _in_thread(resource_usage.Growth, [workspace])
            await shell._start()
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return shell

    async def run(self, command: str, timeout_s: float) -> Output:
        """Run a command, after those that were asked for before.

        Directory, variables, functions, options and background processes stay for the next one. When the time is up,
        all that the command has begun is ended, in the background too, and the shell is kept. A cancelled call does
        the same.

        Args:
            command: any text that bash reads, without NUL.
            timeout_s: seconds that it may take.

        Raises:
            ReBenchError: if there is no sandbox for it.
        """
        if refused := _refusal(command, timeout_s):
            return Output(f"[{refused}; nothing was run]\n", None, None, timed_out=False, seconds=0.0)
        async with self._turn:
            if self._closing is None:
                return await self._run(command, min(timeout_s, _LONGEST_S))
        return Output("[the session has ended; nothing was run]\n", None, None, timed_out=False, seconds=0.0)

    async def close(self) -> None:
        """End everything, also a command that runs; nothing is left then."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.end("the session has ended")
        async with self._turn:
            await self._stop("the session has ended")
            await _in_thread(shutil.rmtree, self._scratch, True)  # noqa: FBT003 - ignore_errors

    async def _run(self, command: str, timeout_s: float) -> Output:
        sandbox = await self._ready()
        self._number += 1
        self._write(command)
        started = time.monotonic()
        self._busy(busy=True)
        self._unanswered = True
        sandbox.ask({"run": self._number, "timeout_s": timeout_s})
        try:
            answer = await sandbox.answer(timeout_s + _GRACE_S)
        except TimeoutError:
            await sandbox.end("the sandbox did not answer and was ended, with all its processes")
            answer = None
        except asyncio.CancelledError:
            sandbox.ask({"interrupt": self._number})
            raise
        finally:
            self._busy(busy=False)
        self._unanswered = False
        seconds = time.monotonic() - started
        if answer is None:
            return await self._lost(sandbox, seconds, timed_out=seconds > timeout_s)
        return self._told_by(Reply.read(answer), seconds)

    def _write(self, command: str) -> None:
        path = self._scratch / "shown" / "command"
        try:
            path.write_bytes(command.encode(errors="replace"))
            path.chmod(0o644)
        except OSError as error:
            raise ReBenchError(f"the command cannot be handed over: {error}") from None

    def _told_by(self, reply: Reply, seconds: float) -> Output:
        self._directory = reply.directory or self._directory
        late = f"[written in the background before this command]\n{reply.late}\n[this command]\n" if reply.late else ""
        before = _with_notes("", self._taken_notes())
        text = _with_notes(before + late + reply.text, reply.notes)
        return Output(text, reply.whole, reply.status, reply.timed_out, seconds)

    async def _lost(self, sandbox: Sandbox, seconds: float, *, timed_out: bool) -> Output:
        """Return what is left to say when a command has ended its sandbox, or we have."""
        await self._stop("")
        again = "" if self._closing else f"; the next command has a new shell in {self._directory}"
        notes = [*self._taken_notes(), f"{sandbox.why or _ALL_ENDED}{again}"]
        return Output(_with_notes("", notes), None, None, timed_out, seconds)

    def _taken_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    async def _ready(self) -> Sandbox:
        """Return a sandbox that can run a command: the one that is there, or a new one."""
        if self._unanswered and self._sandbox is not None:
            await self._settle(self._sandbox)
        self._unanswered = False
        if self._full:
            await self._measure()
        if self._sandbox is not None and not self._sandbox.alive:
            why = self._sandbox.why or _ALL_ENDED
            self._notes.append(f"before this command: {why}; this is a new shell in {self._directory}")
            await self._stop("")
        return self._sandbox or await self._start()

    async def _settle(self, sandbox: Sandbox) -> None:
        """Wait for the end of a command whose caller has gone."""
        try:
            answer = await sandbox.answer(_GRACE_S)
        except TimeoutError:
            await sandbox.end("the sandbox did not answer and was ended, with all its processes")
        else:
            if answer is not None:
                self._notes += Reply.read(answer).notes

    async def _measure(self) -> None:
        """Renew the sandbox if its workspace has become too full, or has room again."""
        try:
            self._full = await _in_thread(self._growth.is_over_now, self._around.limits.disk_mib * _MIB)
        except OSError:  # it holds what an ordinary user's server cannot look at
            self._full = True
        if self._full != self._cramped:
            await self._stop("")
            self._notes.append(
                "the workspace is full: files can be removed but not written; this is a new shell"
                if self._full
                else "there is room in the workspace again; this is a new shell"
            )

    async def _start(self) -> Sandbox:
        self._cramped = self._full
        limits = self._around.limits
        if self._cramped:  # nothing can be written, so that the quota holds however often one tries
            limits = replace(limits, file_mib=0, disk_mib=2 * limits.disk_mib)
        around = replace(self._around, limits=limits)
        options = self._options | {"directory": self._directory}
        self._sandbox = sandbox = await Sandbox.start(
            self._backend, around, self._scratch / "shown", options["place"], options
        )
        pid, loop = sandbox.pid, asyncio.get_running_loop()

        def watched(look: Callable[[], str], *, disk: bool) -> Watched:
            def tell(why: str) -> None:
                loop.call_soon_threadsafe(self._exceeded, sandbox, why, disk)

            return Watched(look, tell)

        self._watched = [
            watched(lambda: resource_usage.memory_violation(pid, limits), disk=False),
            watched(lambda: self._growth.violation(pid, limits), disk=True),
        ]
        for watcher, each in zip((MEMORY, DISK), self._watched, strict=True):
            watcher.add(each)
        return sandbox

    async def _stop(self, why: str) -> None:
        self._unwatch()
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await asyncio.shield(sandbox.end(why))

    def _unwatch(self) -> None:
        for watcher, watched in zip((MEMORY, DISK), self._watched, strict=False):
            watcher.remove(watched)
        self._watched = []

    def _busy(self, *, busy: bool) -> None:
        for watched in self._watched:
            watched.busy = busy

    def _exceeded(self, sandbox: Sandbox, why: str, disk: bool) -> None:
        """End what runs in a sandbox that is over a limit; all of it, if the supervisor does not see to that."""
        if sandbox is not self._sandbox:
            return
        self._full = self._full or disk
        now = time.monotonic()
        since = now - self._told
        if since > _FORGET_S:
            self._told = now
            sandbox.ask({"end": why})
        elif since > _HEED_S:
            sandbox.end(f"{why}; all processes of the session were ended")


async def _in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a thread; if the caller is cancelled meanwhile, that takes effect when it has returned."""
    called = asyncio.get_running_loop().run_in_executor(THREADS, function, *arguments)
    try:
        return await asyncio.shield(called)
    except asyncio.CancelledError:
        await asyncio.wait([called])
        raise


def _refusal(command: str, timeout_s: float) -> str:
    """Return why a command cannot be run, or the empty string."""
    if "\0" in command:
        return f"the command has a NUL character, at position {command.index(chr(0))}; bash cannot read it"
    if len(command) > LONGEST_COMMAND or len(command.encode(errors="replace")) > LONGEST_COMMAND:
        return f"the command is longer than {LONGEST_COMMAND >> 20} MiB; write the text to a file in pieces"
    if not timeout_s > 0:
        return f"the time limit must be more than 0 seconds, not {timeout_s}"
    return ""


def _with_notes(text: str, notes: Sequence[str]) -> str:
    lines = "".join(f"[{note}]\n" for note in notes)
    return text + ("\n" if lines and text and not text.endswith("\n") else "") + lines
