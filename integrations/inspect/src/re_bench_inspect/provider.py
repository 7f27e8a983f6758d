"""The sandbox provider ``rebench``: our sandboxes for any task of Inspect, without root and without Docker."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    concurrency,
    sandboxenv,
)
from inspect_ai.util._subprocess import max_subprocesses_context_var

from re_bench.errors import ReBenchError, UsageError
from re_bench_inspect import plain_sandbox, sandbox_files, sessions
from re_bench_inspect.sandbox_config import SandboxConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic import BaseModel

    from re_bench_inspect.plain_sandbox import PlainSandbox
    from re_bench_server.session import Session
    from re_bench_server.shell.program import ProgramOutput

_KILLED = 137
"""The exit status that Docker has for a program over the memory limit too."""
_USER = "agent"


@sandboxenv(name="rebench")
class ReBenchSandbox(SandboxEnvironment):
    """The sandbox of a sample: that of a session at one of our tasks, or one of its own."""

    def __init__(self, *, session: Session | None = None, plain: PlainSandbox | None = None) -> None:
        """Run programs in the sandbox of a session, or in one without."""
        super().__init__()
        self.session = session
        """The session at one of our tasks; None for a sandbox alone."""
        self._plain = plain

    async def exec(  # noqa: PLR0917 - Inspect's
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002 - Inspect's name
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109 - Inspect's name
        timeout_retry: bool = True,  # noqa: ARG002 - a program that took too long would again
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a program in the working directory of the sandbox, ``/workspace``.

        Raises:
            TimeoutError: if it takes longer than ``timeout`` seconds; all that it has started is ended then.
            PermissionError: if it must not be run.
            OutputLimitExceededError: if stdout or stderr is longer than Inspect takes.
            SandboxUserUnsupportedError: for a user other than the sandbox's one.
            SandboxUnavailableError: if the sandbox has ended, or cannot be started.
        """
        if user not in {None, _USER}:
            raise SandboxUserUnsupportedError(
                f"the sandbox rebench cannot run programs as {user!r}: it has one user, {_USER!r}, without privileges"
            )
        async with _slot() if concurrency else nullcontext():
            output = await self._execute(
                cmd,
                stdin=input.encode() if isinstance(input, str) else input or b"",
                directory=cwd,
                environment=env or {},
                timeout_s=timeout,
                output_bytes=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
            )
        return _result(output)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file; a relative path is one from ``/workspace`` on. The directories above it are made.

        Raises:
            PermissionError: if the sandbox's user may not write it.
            IsADirectoryError: if it is a directory.
            TimeoutError: if it takes minutes.
            OSError: for other reasons, such as the limit on the disk.
        """
        await sandbox_files.write(self._execute, file, contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Return the contents of a file; a relative path is one from ``/workspace`` on.

        Raises:
            FileNotFoundError: if it is not there.
            PermissionError: if the sandbox's user may not read it.
            IsADirectoryError: if it is a directory.
            UnicodeDecodeError: if it is to be ``text`` and is none.
            OutputLimitExceededError: if it is longer than Inspect takes.
            TimeoutError: if it takes minutes.
        """
        data = await sandbox_files.read(self._execute, file)
        return data.decode() if text else data

    async def _execute(self, command: Sequence[str], **options: Any) -> ProgramOutput:
        try:
            inner = self.session or self._plain
            assert inner is not None
            output = await inner.execute(command, **options)
        except ReBenchError as error:
            raise SandboxUnavailableError(str(error)) from None
        if not output.ran:
            raise SandboxUnavailableError(output.error)
        return output

    @classmethod
    async def task_init(cls, task_name: str, config: BaseModel | str | None) -> None:  # noqa: ARG003 - Inspect's
        """Check that the task's sandboxes can be had, before the first sample.

        Raises:
            PrerequisiteError: if not, with the reason and the remedy.
        """
        try:
            wanted = SandboxConfig.of(config)
            await (plain_sandbox.task_init(wanted) if wanted.task is None else sessions.task_init(wanted))
        except UsageError as error:
            raise PrerequisiteError(str(error)) from None

    @classmethod
    async def task_cleanup(
        cls,
        task_name: str,  # noqa: ARG003 - Inspect's
        config: BaseModel | str | None,
        cleanup: bool,  # noqa: ARG003 - nothing of a sandbox outlives its evaluation
    ) -> None:
        """End what the task's sandboxes share."""
        wanted = SandboxConfig.of(config)
        await (plain_sandbox.task_cleanup() if wanted.task is None else sessions.task_cleanup(wanted))

    @classmethod
    async def sample_init(
        cls,
        task_name: str,  # noqa: ARG003 - Inspect's
        config: BaseModel | str | None,
        metadata: dict[str, str],  # noqa: ARG003 - Inspect's
    ) -> dict[str, SandboxEnvironment]:
        """Open a sample's sandbox, which has one name, ``default``.

        Raises:
            PrerequisiteError: if what is configured cannot be had here.
            ReBenchError: if the sandbox does not start.
        """
        try:
            wanted = SandboxConfig.of(config)
            if wanted.task is None:
                return {"default": cls(plain=await plain_sandbox.open_sandbox(wanted))}
            session = await sessions.open_session(wanted)
        except UsageError as error:
            raise PrerequisiteError(str(error)) from None
        return {"default": cls(session=session)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,  # noqa: ARG003 - Inspect's
        config: BaseModel | str | None,  # noqa: ARG003 - Inspect's
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """End all that runs in a sample's sandbox, and remove its files."""
        for environment in environments.values():
            await environment.as_type(cls).close(interrupted=interrupted)

    async def close(self, *, interrupted: bool) -> None:
        """End all that runs in the sandbox, and remove its files."""
        if self.session is not None:
            await sessions.close_session(self.session, interrupted=interrupted)
        if self._plain is not None:
            await self._plain.close()

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:  # noqa: A002, ARG003 - Inspect's; there is nothing to choose
        """Remove what killed evaluations have left: files alone, since their programs end with them."""
        removed = plain_sandbox.remove_abandoned(plain_sandbox.default_directory())
        print("\n".join(f"removed {name}" for name in removed) or "nothing is left of a killed evaluation")

    @classmethod
    def default_concurrency(cls) -> int | None:
        """Return how many sandboxes there are at a time, unless ``--max-sandboxes`` says otherwise."""
        return 2 * len(os.sched_getaffinity(0))

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Return the configuration that a log has."""
        return SandboxConfig.model_validate(config)


def _slot() -> AbstractAsyncContextManager[object]:
    """Return one of the places for programs on this machine, which all local providers share."""
    return concurrency("subprocesses", max_subprocesses_context_var.get(), resizable=True)


def _result(output: ProgramOutput) -> ExecResult[str]:
    stdout, stderr = (data.decode(errors="replace") for data in (output.stdout, output.stderr))
    if output.timed_out:
        error = TimeoutError(f"the command was ended after {output.seconds:.0f} seconds")
        error.truncated_output = stdout + stderr  # type: ignore[attr-defined] # which Inspect shows the model
        raise error
    if output.errno in {errno.EACCES, errno.EPERM}:
        raise PermissionError(output.errno, output.error)
    if output.truncated:
        raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, stdout + stderr)
    if output.error:
        stderr += f"{output.error}\n" if not stderr or stderr.endswith("\n") else f"\n{output.error}\n"
    status = _KILLED if output.status is None else output.status
    return ExecResult(status == 0, status, stdout, stderr)
