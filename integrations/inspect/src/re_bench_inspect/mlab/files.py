"""The files of an Inspect sandbox: contents by its file functions, everything else by a shell in it."""

from __future__ import annotations

import base64
import contextlib
import math
import posixpath
import shlex
from typing import TYPE_CHECKING, TypeVar

import anyio
from inspect_ai.util import OutputLimitExceededError
from typing_extensions import override

from mlab_agent.workspaces.files import MIB, WorkspaceError
from mlab_agent.workspaces.shell import TIMEOUT_S, CommandEnd, ShellFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from inspect_ai.util import ExecResult, SandboxEnvironment

    from re_bench_inspect.mlab.loop_calls import LoopCalls

T = TypeVar("T")

_CLEANUP_S = 10
_LONGEST_ARGUMENT = 100_000  # bytes; Linux takes 128 KiB
_REFUSALS = (
    TimeoutError,
    PermissionError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    UnicodeError,
    OutputLimitExceededError,
)
"""What a sandbox raises where a single operation cannot be done."""


class InspectFiles(ShellFiles):
    """The files below a directory of a sandbox, by default the one of the sample."""

    received_bytes = 4 * MIB  # a third more in base64; sandboxes return 10 MiB of output

    def __init__(
        self,
        sandbox: SandboxEnvironment,
        loop: LoopCalls,
        directory: str | None = None,
        refusals: tuple[type[Exception], ...] = (),
    ) -> None:
        """Open the directory.

        Args:
            sandbox: where it is.
            loop: calls the sandbox's functions.
            directory: absolute, or below that of the sample; None for that one.
            refusals: further exceptions of which the model is told; all others end the sample.

        Raises:
            WorkspaceError: if the sandbox has no such directory, or lacks a program that is needed.
        """
        self._sandbox = sandbox
        self._loop = loop
        self._directory = directory
        self._refusals: tuple[type[Exception], ...] = (*_REFUSALS, *refusals)
        self.root = self.shell("pwd -P && find /dev/null -printf '' && realpath -mz . > /dev/null").decode().strip()

    @override
    def shell(self, script: str) -> bytes:
        move = f"cd {shlex.quote(self.root)} && " if self.root != "." else ""
        command = f"({move}{script}) | base64 -w0; exit ${{PIPESTATUS[0]}}"
        done = self._call(lambda: self._bash(command, TIMEOUT_S))
        if not done.success:
            message = done.stderr.strip().rpartition("bash: ")[2][-500:]
            raise WorkspaceError(f"it failed in the sandbox: {message or f'exit status {done.returncode}'}")
        return base64.b64decode(done.stdout)

    @override
    def run(self, command: str, cleanup: str, timeout_s: float) -> CommandEnd:
        async def run() -> CommandEnd:
            ended = False
            try:
                done = await self._bash(f"{command}; {cleanup}", timeout_s, shown=True)
                ended = True
            except TimeoutError as error:
                return CommandEnd(str(error) or "the time is over")
            finally:
                if not ended:  # the sandbox may have ended the shell alone
                    with (
                        anyio.CancelScope(shield=True),
                        anyio.move_on_after(_CLEANUP_S),
                        contextlib.suppress(Exception),
                    ):
                        await self._bash(cleanup, _CLEANUP_S)
            return CommandEnd(f"{done.stdout}{done.stderr}")

        return self._call(run)

    @override
    def read(self, name: str) -> bytes:
        path = posixpath.join(self.root, name)

        async def read() -> bytes:
            return await self._sandbox.read_file(path, text=False)

        return self._call(read)

    @override
    def _send(self, part: str, data: bytes, begin: str) -> str:
        self.shell(begin)
        path = posixpath.join(self.root, part)
        self._call(lambda: self._sandbox.write_file(path, data))
        return "true"

    def _call(self, function: Callable[[], Awaitable[T]]) -> T:
        try:
            return self._loop.call(function, *self._refusals)
        except self._refusals as error:
            raise WorkspaceError(f"it failed in the sandbox: {type(error).__name__}: {error}") from None

    async def _bash(self, command: str, timeout_s: float, *, shown: bool = False) -> ExecResult[str]:
        """Run a command; only one that is ``shown`` is an event of the transcript by itself."""
        hidden = getattr(self._sandbox, "no_events", None)  # of what Inspect wraps sandboxes in
        script = command.encode(errors="surrogateescape")
        is_long = len(script) > _LONGEST_ARGUMENT
        with contextlib.nullcontext() if shown or hidden is None else hidden():
            return await self._sandbox.exec(
                ["bash", "-c", 'eval "$(cat)"' if is_long else command],
                input=script if is_long else None,
                cwd=self._directory,
                timeout=math.ceil(timeout_s),
                timeout_retry=False,
            )
