"""The sandbox of a session: from the start of its supervisor to the end of all its processes, and the one after it.

Everything runs in one event loop. All sandboxes share a few threads for calls that block.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from re_bench.data.files import short_path
from re_bench.errors import ReBenchError
from re_bench.guest import ipc
from re_bench.sandbox import resource_usage
from re_bench.sandbox.process import end_process, start
from re_bench_server.shell.guest_files import CHANNEL, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from re_bench.limits import Limits
    from re_bench.sandbox.resource_usage import DiskGrowth
    from re_bench.sandbox.spec import Backend, SandboxSpec

Result = TypeVar("Result")

ALL_ENDED = "all processes of the session were ended, and with them the shell"

_END_GRACE_S = 2.0
"""How long the supervisor may take to end all processes over a limit, before the sandbox is ended."""
_VIOLATION_S = 10.0
"""How long a violation lasts: a later one is a new violation."""
_MIB = 1 << 20

_START_S = 60.0
_POLL_S = 0.02
_MAX_ERROR = 600
_BROKEN = "it broke the protocol"
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


class Sandbox(asyncio.Protocol):
    """A sandbox with a supervisor, which runs one command of the shell at a time, and programs beside it."""

    def __init__(self, process: subprocess.Popen[bytes], cleanup: Callable[[], None], max_reply: int) -> None:
        """Prepare for a connection with the supervisor in ``process``, whose replies have at most that many bytes."""
        self._process = process
        self._first = process.pid
        self._cleanup = cleanup
        self._max_reply = max_reply
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._socket: socket.socket | None = None
        self._outbox: deque[tuple[memoryview, list[int]]] = deque()
        self._reply: asyncio.Future[dict[str, Any] | None] | None = None
        self._early_reply: dict[str, Any] | None = None
        self._programs: dict[int, asyncio.Future[dict[str, Any] | None]] = {}
        self._program_count = 0
        self._ending: asyncio.Future[None] | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._busy = asyncio.Event()
        self.end_reason = ""
        """Why we ended it, in words, or the empty string."""
        self.violation = ""
        """Which limit it was over last, in words, or the empty string."""

    @classmethod
    async def start(
        cls, backend: Backend, spec: SandboxSpec, files: Path, guest_files: str, options: Mapping[str, Any]
    ) -> Sandbox:
        """Start a sandbox and wait until it can run commands.

        Args:
            backend: the sandbox's backend.
            spec: what it shows, with ``files`` as ``guest_files``.
            files: the directory made by :func:`re_bench_server.shell.guest_files.lay_out`.
            guest_files: its path in the sandbox.
            options: the options of the supervisor.

        Raises:
            ReBenchError: if it does not start.
        """
        with socket.socket(socket.AF_UNIX) as listener:
            _listen(listener, files)
            program = [backend.python, "-I", "-S", "-c", PROGRAM, guest_files, f"{guest_files}/{CHANNEL}"]
            launch = backend.launch([*program, json.dumps(dict(options))], spec)
            try:
                # By the loop's thread, since the sandbox ends with the thread that starts it.
                process = start(launch, stdout=subprocess.DEVNULL)
            except OSError as error:
                raise ReBenchError(f"the shell's sandbox cannot be started: {error}") from None
            sandbox = cls(process, launch.cleanup, _MAX_ESCAPE * options["output_bytes"] + _MESSAGE_OVERHEAD)
            try:
                await sandbox._connect(listener)
                if launch.first:
                    first = await in_thread(launch.first)
                    sandbox._first = first or process.pid
            except BaseException:
                await asyncio.shield(sandbox.end("it did not start"))
                raise
            finally:
                (files / CHANNEL).unlink(missing_ok=True)
        assert process.stderr is not None
        process.stderr.close()
        return sandbox

    @property
    def alive(self) -> bool:
        """Whether it accepts requests."""
        return self._transport is not None and self._ending is None

    def watch(self, limits: Limits, growth: DiskGrowth, on_violation: Callable[[str, bool], None]) -> None:
        """Check the limits until the end; ``on_violation`` is called with a text, and whether it is about the disk."""
        pid = self._process.pid
        for threads, check, disk in (
            (_MEMORY_CHECKS, lambda: resource_usage.memory_violation(pid, limits), False),
            (_DISK_CHECKS, lambda: growth.violation(self._first, limits), True),
        ):
            self._watching.append(asyncio.create_task(self._check(threads, check, on_violation, disk)))

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
            pause = max(_BUSY_CHECK_S, _PAUSE_FACTOR * (loop.time() - began))
            if self._busy.is_set():
                await asyncio.sleep(pause)
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._busy.wait(), max(pause, _IDLE_CHECK_S))

    def set_busy(self, *, busy: bool) -> None:
        """Tell whether a command runs, so that limits are checked more often."""
        if busy:
            self._busy.set()
        else:
            self._busy.clear()

    def request(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send a request with descriptors, which are closed here, unless the sandbox has ended."""
        self._outbox.append((memoryview(ipc.encode(message, len(descriptors))), list(descriptors)))
        self._flush()

    def start_program(
        self, message: dict[str, Any], descriptors: Sequence[int]
    ) -> tuple[int, asyncio.Future[dict[str, Any] | None]]:
        """Send the request for a program; return its number, and a future for its end: None if the sandbox ended."""
        self._program_count += 1
        number, ended = self._program_count, asyncio.get_running_loop().create_future()
        if self._transport is None:
            ended.set_result(None)
        else:
            self._programs[number] = ended
        self.request({"execute": number, **message}, descriptors)
        return number, ended

    async def reply(self, within_s: float) -> dict[str, Any] | None:
        """Return the next reply to a command, or None if the sandbox has ended.

        Raises:
            TimeoutError: if neither happens in time.
        """
        early, self._early_reply = self._early_reply, None
        if early is not None or self._transport is None:
            return early
        self._reply = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                return await self._reply
        finally:
            self._reply = None

    def end(self, reason: str) -> asyncio.Future[None]:
        """End all its processes, unless that has begun already; the future is done when nothing is left."""
        if self._ending is None:
            for watching in self._watching:
                watching.cancel()
            self.end_reason = self.end_reason or reason
            self._ending = asyncio.get_running_loop().run_in_executor(_THREADS, _end, self._process, self._cleanup)
            if self._transport is not None:
                self._transport.abort()
        return self._ending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, which reads; what is sent may have descriptors with it, which transports cannot send."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by class
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))

    def data_received(self, data: bytes) -> None:
        """Take in a part of a reply; invalid data end the sandbox."""
        self._buffer += data
        try:
            while self._ending is None and (message := ipc.take(self._buffer, self._max_reply)) is not None:
                self._take(message)
        except ipc.FrameError:
            self.end(_BROKEN)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason does not matter
        """End the sandbox after its supervisor."""
        self._transport = None
        self._buffer.clear()
        if self._socket is not None:
            asyncio.get_running_loop().remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._flush()
        for waiting in (self._reply, *self._programs.values()):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
        self.end("")

    def _take(self, message: dict[str, Any]) -> None:
        """Hand a message to who waits for it; one that nobody has asked for ends the sandbox."""
        number = message.get("program")
        if type(number) is int and number in self._programs:
            self._programs.pop(number).set_result(message)
        elif number is None and self._reply is not None and not self._reply.done():
            self._reply.set_result(message)
        elif number is None and self._early_reply is None:
            self._early_reply = message  # to a command whose caller was cancelled
        else:
            self.end(_BROKEN)

    def _flush(self) -> None:
        """Send what the socket takes now; the rest when it takes more."""
        loop = asyncio.get_running_loop()
        while self._outbox:
            data, descriptors = self._outbox.popleft()
            sent = len(data)
            with suppress(ConnectionError):  # of which we hear
                try:
                    sent = _send(self._socket, data, descriptors) if self._socket is not None else sent
                except BlockingIOError:
                    self._outbox.appendleft((data, descriptors))
                    loop.add_writer(cast("socket.socket", self._socket), self._flush)
                    return
            for descriptor in descriptors:
                os.close(descriptor)
            if sent < len(data):
                self._outbox.appendleft((data[sent:], []))
        if self._socket is not None:
            loop.remove_writer(self._socket)

    async def _connect(self, listener: socket.socket) -> None:
        """Accept the supervisor's connection, and wait for its first message."""
        loop = asyncio.get_running_loop()
        accepting = asyncio.ensure_future(loop.sock_accept(listener))
        try:
            async with asyncio.timeout(_START_S):
                while not accepting.done():
                    await asyncio.wait({accepting}, timeout=_POLL_S)
                    if not accepting.done() and self._process.poll() is not None:
                        raise self._start_error()
            await loop.create_connection(lambda: self, sock=accepting.result()[0])
            ready = await self.reply(_START_S)
        except TimeoutError:
            raise self._start_error() from None
        finally:
            if not accepting.cancel() and self._transport is None:  # cancelled when the connection had just come
                with suppress(OSError):
                    accepting.result()[0].close()
        if ready is None:
            raise self._start_error()

    def _start_error(self) -> ReBenchError:
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        stderr = (self._process.stderr.read() or b"").decode(errors="replace").strip()[-_MAX_ERROR:]
        return ReBenchError(f"the shell's sandbox did not start: {stderr or self._process.poll()}")


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


def _send(channel: socket.socket, data: memoryview, descriptors: list[int]) -> int:
    return socket.send_fds(channel, [data], descriptors) if descriptors else channel.send(data)


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
