"""The sandbox of a session, from the start of its supervisor to the end of all its processes.

Everything runs in one event loop. All sandboxes share a few threads for calls that block.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from re_bench.data.files import short_path
from re_bench.errors import ReBenchError
from re_bench.guest import ipc
from re_bench.sandbox import resource_usage
from re_bench.sandbox.process import end_process, start
from re_bench_server.shell.guest_files import CHANNEL, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from re_bench.guest.truncate import HeadTail
    from re_bench.limits import Limits
    from re_bench.sandbox.resource_usage import DiskGrowth
    from re_bench.sandbox.spec import Backend, SandboxSpec

Result = TypeVar("Result")

_NO_REPLY = "the sandbox did not answer and was ended, with all its processes"
_BROKEN = "it broke the protocol"
_GRACE_S = 30.0
"""How long the supervisor may take beyond the time of what it runs before everything is ended."""
_START_S = 60.0
_POLL_S = 0.02
_CHUNK = 1 << 16
_MAX_ERROR = 600
_MESSAGE_OVERHEAD = 1 << 20
_MAX_ESCAPE = 8
"""More than the bytes that a byte of output can become in JSON."""
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="re-bench-shell")
_MEMORY_CHECKS = ThreadPoolExecutor(1, thread_name_prefix="re-bench-memory")
_DISK_CHECKS = ThreadPoolExecutor(1, thread_name_prefix="re-bench-disk")
_BUSY_CHECK_S, _IDLE_CHECK_S = 0.05, 0.5
_PAUSE_FACTOR = 4  # checks take at most a fifth of the time of their thread


async def in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function that blocks; if the caller is cancelled meanwhile, that takes effect when it has returned.

    The threads are not the loop's own, which scorings may occupy for long.
    """
    call = asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.wait([call])
        raise


@dataclass
class Call:
    """Something that the supervisor was asked to run."""

    reply: asyncio.Future[dict[str, Any] | None]
    """Its end; None if the sandbox has ended."""
    output: Mapping[str, HeadTail] = field(default_factory=dict)
    """Where its output goes, by the name of the stream; the output of a command of the shell is in the reply."""


class Sandbox:
    """A sandbox with a supervisor, which runs one command of the shell at a time, and programs beside it."""

    def __init__(self, process: subprocess.Popen[bytes], cleanup: Callable[[], None], max_reply: int) -> None:
        """Prepare for a connection with the supervisor in ``process``, whose messages have at most that many bytes."""
        self._process, self._cleanup, self._max_reply = process, cleanup, max_reply
        self._first = process.pid
        self._writer: asyncio.StreamWriter | None = None
        self._calls: dict[int, Call] = {0: Call(asyncio.get_running_loop().create_future())}  # 0: it is ready
        self._count = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: asyncio.Future[None] | None = None
        self._begun = asyncio.Event()
        """Set by a call, so that limits are checked at once."""
        self.end_reason = ""
        """Why we ended it, or the empty string."""
        self.violation = ""
        """Which limit it was over last, or the empty string."""

    @classmethod
    async def start(cls, backend: Backend, spec: SandboxSpec, files: Path, options: Mapping[str, Any]) -> Sandbox:
        """Start a sandbox and wait until it can run commands.

        Args:
            backend: the sandbox's backend.
            spec: what it shows, ``files`` too.
            files: the directory made by :func:`re_bench_server.shell.guest_files.lay_out`.
            options: the options of the supervisor, of which ``guest_files`` is the path of ``files`` inside.

        Raises:
            ReBenchError: if it does not start.
        """
        with socket.socket(socket.AF_UNIX) as listener:
            _listen(listener, files)
            inside = options["guest_files"]
            program = [backend.python, "-I", "-S", "-c", PROGRAM, inside, f"{inside}/{CHANNEL}"]
            launch = backend.launch([*program, json.dumps(dict(options))], spec)
            try:
                # By the loop's thread, since the sandbox ends with the thread that starts it.
                process = start(launch, stdout=subprocess.DEVNULL)
            except OSError as error:
                raise ReBenchError(f"the shell's sandbox cannot be started: {error}") from None
            sandbox = cls(process, launch.cleanup, _MAX_ESCAPE * options["output_bytes"] + _MESSAGE_OVERHEAD)
            server: asyncio.Server | None = None
            try:
                server = await asyncio.start_unix_server(sandbox.connect, sock=listener, start_serving=False)
                await server.start_serving()
                await sandbox._wait_until_ready()
                if launch.first:
                    first = await in_thread(launch.first)
                    sandbox._first = first or process.pid
            except BaseException:
                await asyncio.shield(sandbox.end("it did not start"))
                raise
            finally:
                if server is not None:
                    server.close()
                (files / CHANNEL).unlink(missing_ok=True)
        assert process.stderr is not None
        process.stderr.close()
        return sandbox

    @property
    def alive(self) -> bool:
        """Whether it accepts requests."""
        return self._writer is not None and self._ending is None

    @property
    def busy(self) -> bool:
        """Whether something runs that was asked for."""
        return bool(self._calls)

    def watch(self, limits: Limits, growth: DiskGrowth, on_violation: Callable[[str, bool], None]) -> None:
        """Check the limits until the end; ``on_violation`` is called with a text, and whether it is about the disk."""
        memory = partial(resource_usage.memory_violation, self._process.pid, limits)
        disk = partial(growth.violation, self._first, limits)
        for threads, check, is_disk in ((_MEMORY_CHECKS, memory, False), (_DISK_CHECKS, disk, True)):
            self._tasks.append(asyncio.create_task(self._check(threads, check, on_violation, is_disk)))

    async def _check(
        self, threads: Executor, check: Callable[[], str], on_violation: Callable[[str, bool], None], disk: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                violation = await loop.run_in_executor(threads, check)
            except Exception as error:  # noqa: BLE001 - a program that cannot be watched must not go on
                violation = f"its limits cannot be watched ({error!r})"
            if violation:
                on_violation(violation, disk)
            pause = _BUSY_CHECK_S if self.busy else _IDLE_CHECK_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._begun.wait(), max(pause, _PAUSE_FACTOR * (loop.time() - began)))
            self._begun.clear()

    def send(self, message: dict[str, Any]) -> None:
        """Send a request, unless the sandbox has ended."""
        if self._writer is not None and self._ending is None:
            self._writer.write(ipc.encode(message))

    def call(self, message: dict[str, Any], output: Mapping[str, HeadTail] | None = None) -> tuple[int, Call]:
        """Send a request to run something; return its number, and the call."""
        self._count += 1
        call = Call(asyncio.get_running_loop().create_future(), output or {})
        if self.alive:
            self._calls[self._count] = call
            self._begun.set()
            self.send({"number": self._count, **message})
        else:
            call.reply.set_result(None)
        return self._count, call

    async def wait_for(self, number: int, call: Call, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the reply to a call, or None if the sandbox has ended. If the caller is cancelled, the call ends too.

        The supervisor ends what takes longer than ``timeout_s``; if it does not, the sandbox is ended.
        """
        try:
            await asyncio.wait({call.reply}, timeout=None if timeout_s is None else timeout_s + _GRACE_S)
        except asyncio.CancelledError:
            self.send({"interrupt": number})
            asyncio.get_running_loop().call_later(_GRACE_S, lambda: call.reply.done() or self.end(_NO_REPLY))
            raise
        if not call.reply.done():
            await asyncio.shield(self.end(_NO_REPLY))
        return await call.reply

    def end(self, reason: str) -> asyncio.Future[None]:
        """End all its processes, unless that has begun already; the future is done when nothing is left."""
        if self._ending is None:
            self.end_reason = reason
            self._ending = asyncio.get_running_loop().run_in_executor(_THREADS, _end, self._process, self._cleanup)
            for watching in self._tasks[1:]:
                watching.cancel()
            if self._writer is not None:
                self._writer.transport.abort()
        return self._ending

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the supervisor's connection, the first one."""
        if self._writer is not None or self._ending is not None:
            writer.transport.abort()
            return
        self._writer = writer
        self._tasks.append(asyncio.create_task(self._read(reader)))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Take in messages until the connection ends; the sandbox ends with it, and by an invalid message."""
        try:
            while self._ending is None:
                await self._take(reader)
        except ipc.FrameError:
            self.end(_BROKEN)
        except (asyncio.IncompleteReadError, OSError):
            self.end("")
        finally:
            for call in self._calls.values():
                call.reply.set_result(None)
            self._calls.clear()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        """Read a message: the reply to a call, or the size of a part of its output, which follows.

        Raises:
            FrameError: if it is neither.
        """
        length, descriptors = ipc.HEADER.unpack(await reader.readexactly(ipc.HEADER.size))
        if length > self._max_reply or descriptors:
            raise ipc.FrameError("more than is allowed")
        message = ipc.decode(await reader.readexactly(length))
        number = message.get("number")
        if type(number) is not int or number not in self._calls:
            raise ipc.FrameError("no such call")
        output = self._calls[number].output
        for name in output.keys() & message.keys():
            size = message[name]
            if type(size) is not int or not 0 < size <= _CHUNK:
                raise ipc.FrameError("no size")
            output[name].add(await reader.readexactly(size))
            return
        self._calls.pop(number).reply.set_result(message)

    async def _wait_until_ready(self) -> None:
        ready, deadline = self._calls[0].reply, time.monotonic() + _START_S
        while not ready.done() and self._process.poll() is None and time.monotonic() < deadline:
            await asyncio.wait({ready}, timeout=_POLL_S)
        if not ready.done() or ready.result() is None:
            assert self._process.stderr is not None
            os.set_blocking(self._process.stderr.fileno(), False)
            stderr = (self._process.stderr.read() or b"").decode(errors="replace").strip()[-_MAX_ERROR:]
            raise ReBenchError(f"the shell's sandbox did not start: {stderr or self._process.poll()}")


def _listen(listener: socket.socket, directory: Path) -> None:
    """Bind a socket in ``directory``, whose path may be longer than an address can be."""
    (directory / CHANNEL).unlink(missing_ok=True)
    with short_path(directory) as path:
        listener.bind(f"{path}/{CHANNEL}")
    (directory / CHANNEL).chmod(0o666)  # the sandbox is another user
    listener.listen(1)
    listener.settimeout(0)


def _end(process: subprocess.Popen[bytes], cleanup: Callable[[], None]) -> None:
    end_process(process)
    cleanup()
    if process.stderr is not None:
        with suppress(OSError):
            process.stderr.close()
