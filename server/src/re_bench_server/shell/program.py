"""A program beside a session's shell, seen from the server: its pipes, its output, and how it ended.

The server makes the pipes and passes the program's ends into the sandbox, so that no output goes through the
supervisor, and none of it has to be believed but its bytes.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from re_bench.errors import ReBenchError
from re_bench.guest.truncate import HeadTail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench_server.shell.sandbox import Sandbox

OUTPUT_BYTES = 10 << 20
"""How much of each of a program's outputs is kept by default, in bytes."""
CANNOT_RUN, NOT_FOUND = 126, 127
"""The exit statuses of a program that cannot be started, and of one that is not there; as in a shell."""

_MAX_COMMAND = 4 << 20
_DRAIN_S = 1.0
_GRACE_S = 30.0
_CHUNK = 1 << 16
_STATUSES = range(256)
_ERRORS = range(1, 134)
_NO_REPLY = "the sandbox did not answer and was ended, with all its processes"
_ALL_ENDED = "all processes of the sandbox were ended"


@dataclass(frozen=True)
class ProgramOutput:
    """The outcome of a program."""

    status: int | None
    """Exit status, 128 and the number of the signal that killed it, or :data:`CANNOT_RUN` and :data:`NOT_FOUND` with
    an :attr:`error`. None if it timed out, or was ended with everything else in the sandbox."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Whether a middle of an output is left out, with a line that says so in its place."""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""
    """Why it was not started, or was ended with everything else, in words; or the empty string."""
    errno: int = 0
    """The system's number of the error for which it was not started; 0 if there is none."""
    ran: bool = True
    """Whether there was a sandbox for it: the session may have ended before."""

    @classmethod
    def not_run(cls, reason: str, *, ran: bool = True) -> ProgramOutput:
        """Return the outcome of a program that was not started."""
        return cls(CANNOT_RUN if ran else None, b"", b"", error=reason, ran=ran)


class ProgramOptions(TypedDict, total=False):
    """How a program runs; all of it has a default."""

    stdin: bytes
    """What it reads; nothing by default."""
    directory: str | None
    """Where it runs, from the workspace on; the workspace by default."""
    environment: Mapping[str, str]
    """Variables beside those of the sandbox."""
    timeout_s: float | None
    """Seconds that it may take; by default there is no limit."""
    output_bytes: int
    """How much of stdout, and of stderr, is kept: the first and the last half; by default :data:`OUTPUT_BYTES`."""


@dataclass(frozen=True)
class Request:
    """What the supervisor is told of a program."""

    command: list[str]
    directory: str
    environment: dict[str, str]

    def refusal(self) -> str:
        """Return why it cannot be run, or the empty string."""
        texts = [*self.command, self.directory, *self.environment, *self.environment.values()]
        if not self.command or not self.command[0]:
            return "the command is empty"
        if any("\0" in text for text in texts):
            return "a NUL character is in the command, the directory or a variable"
        if any(not name or "=" in name for name in self.environment):
            return "the name of a variable is empty or has a '=' in it"
        try:
            size = sum(len(os.fsencode(text)) + 1 for text in texts)
        except UnicodeEncodeError as error:
            return f"the command, the directory or a variable is no text that can be encoded: {error}"
        if size > _MAX_COMMAND:
            limit = f"{_MAX_COMMAND >> 20} MiB"
            return f"the command and its variables are longer than {limit}; pass data by stdin or in a file"
        return ""


async def execute(
    sandbox: Sandbox, request: Request, stdin: bytes, timeout_s: float | None, output_bytes: int
) -> ProgramOutput:
    """Run a program to its end; see :meth:`re_bench_server.shell.shell.Shell.execute`.

    Raises:
        ReBenchError: if there are no descriptors left for its pipes.
    """
    started = time.monotonic()
    pipes = _Pipes(stdin, output_bytes)
    number, ended = sandbox.start_program(asdict(request), pipes.inside)
    try:
        await asyncio.wait({ended}, timeout=timeout_s)
        timed_out = not ended.done()
        if timed_out:
            sandbox.request({"kill": number})
            await asyncio.wait({ended}, timeout=_GRACE_S)
            if not ended.done():
                await asyncio.shield(sandbox.end(_NO_REPLY))
                await ended
        await pipes.wait_for_end(_DRAIN_S)
        seconds = time.monotonic() - started
    except asyncio.CancelledError:
        sandbox.request({"kill": number})
        asyncio.get_running_loop().call_later(_GRACE_S, lambda: ended.done() or sandbox.end(_NO_REPLY))
        raise
    finally:
        if left := pipes.close():
            sandbox.request({"drain": True}, left)
    status, code, error = _outcome(ended.result() or {}, request)
    if status is None and not timed_out:
        error = sandbox.end_reason or sandbox.violation or _ALL_ENDED
    stdout, stderr = pipes.stdout.kept, pipes.stderr.kept
    return ProgramOutput(
        status=None if timed_out else status,
        stdout=stdout.data(),
        stderr=stderr.data(),
        truncated=max(stdout.total, stderr.total) > output_bytes,
        timed_out=timed_out,
        seconds=seconds,
        error=error,
        errno=code,
    )


def _outcome(reply: Mapping[str, Any], request: Request) -> tuple[int | None, int, str]:
    """Return status, error number and error of a reply, any of which may be made up."""
    code, status = reply.get("errno"), reply.get("status")
    if type(code) is not int or code not in _ERRORS:
        return (status if type(status) is int and status in _STATUSES else None), 0, ""
    in_directory = reply.get("in_directory") is True
    name = request.command[0] if in_directory else request.directory
    missing = in_directory and code == errno.ENOENT
    return NOT_FOUND if missing else CANNOT_RUN, code, f"{name}: {os.strerror(code)}"


class _Pipes:
    """The pipes of one program: it reads what we write, and writes what we read."""

    def __init__(self, stdin: bytes, output_bytes: int) -> None:
        ends: list[int] = []
        try:
            for _stream in range(3):
                ends += _pipe()
        except OSError as error:
            for end in ends:
                os.close(end)
            raise ReBenchError(f"the program cannot be started: no pipes can be made ({error.strerror})") from None
        self._stdin = _Writer(ends[1], stdin)
        self.stdout, self.stderr = (_Reader(end, output_bytes) for end in ends[2::2])
        self.inside = [ends[0], ends[3], ends[5]]

    async def wait_for_end(self, at_most_s: float) -> None:
        """Wait until nobody can write any more, for some time: a process in the background may keep a pipe."""
        await asyncio.wait({self.stdout.ended, self.stderr.ended}, timeout=at_most_s)

    def close(self) -> list[int]:
        """Stop reading and writing; return the ends that others may still write to."""
        self._stdin.close()
        return [*self.stdout.take(), *self.stderr.take()]


class _Reader:
    def __init__(self, descriptor: int, keep: int) -> None:
        self.kept = HeadTail(keep)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def take(self) -> list[int]:
        """Stop reading; return the descriptor unless the end was reached."""
        if self.ended.done():
            return []
        self.ended.set_result(None)
        asyncio.get_running_loop().remove_reader(self._descriptor)
        return [self._descriptor]

    def _read(self) -> None:
        with suppress(BlockingIOError):
            if data := os.read(self._descriptor, _CHUNK):
                self.kept.add(data)
            else:
                os.close(*self.take())


class _Writer:
    def __init__(self, descriptor: int, data: bytes) -> None:
        self._descriptor = descriptor
        self._left = memoryview(data)
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_writer(descriptor, self._write)

    def close(self) -> None:
        """Stop writing."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self) -> None:
        with suppress(BlockingIOError):
            try:
                while self._left:
                    self._left = self._left[os.write(self._descriptor, self._left[:_CHUNK]) :]
            except BrokenPipeError:
                self._left = memoryview(b"")
            if not self._left:
                self.close()


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    # The sandbox is another user, and programs open /dev/stdin and /dev/stderr. Nobody else can reach the pipe.
    os.fchmod(read, 0o666)
    return read, write
