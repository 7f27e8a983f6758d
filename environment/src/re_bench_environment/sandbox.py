"""One life of a session's sandbox, from the start of its supervisor to the end of all its processes.

Everything is of one event loop and takes no thread and no task while nothing happens.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.guest import ipc
from re_bench.sandbox.process import end_process
from re_bench_environment.bundle import CHANNEL, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from re_bench.sandbox.spec import Backend, Launch, SandboxSpec

__all__ = ["THREADS", "Sandbox"]

THREADS = ThreadPoolExecutor(4, thread_name_prefix="re-bench-shell")
"""For what blocks: files, and the ends of processes. Not the loop's own threads, which scorings may hold for long."""

_START_S = 60.0
_POLL_S = 0.02
_TAIL = 600
_BESIDE = 1 << 20
_ESCAPED = 8
"""More than what a byte of output can become in JSON."""


class Sandbox(asyncio.Protocol):
    """A sandbox with a supervisor that answers one request at a time."""

    def __init__(self, process: subprocess.Popen[bytes], cleanup: Callable[[], None], longest: int) -> None:
        """Speak with the supervisor in ``process``, whose answers have at most ``longest`` bytes."""
        self._process = process
        self._cleanup = cleanup
        self._longest = longest
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[dict[str, Any] | None] | None = None
        self._ending: asyncio.Future[None] | None = None
        self.why = ""
        """Why it was ended by us, in words, or the empty string."""

    @classmethod
    async def start(
        cls, backend: Backend, around: SandboxSpec, place: Path, inside: str, options: Mapping[str, Any]
    ) -> Sandbox:
        """Start one and wait until it can run commands.

        Args:
            backend: what holds it.
            around: its surroundings, in which ``place`` is shown as ``inside``.
            place: the directory made by :func:`re_bench_environment.bundle.lay_out`.
            inside: its path in the sandbox.
            options: what the supervisor is told.

        Raises:
            ReBenchError: if it does not come up.
        """
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX) as listener:
            _listen(listener, place)
            told = json.dumps(dict(options))
            program = [backend.python, "-I", "-S", "-c", PROGRAM, inside, f"{inside}/{CHANNEL}", told]
            launch = backend.launch(program, around)
            sandbox = cls(_started(launch), launch.cleanup, _ESCAPED * options["keep"] + _BESIDE)
            try:
                connection = await sandbox._accepted(listener)
                await loop.create_connection(lambda: sandbox, sock=connection)
                ready = await sandbox.answer(_START_S)
                if ready is None:
                    raise sandbox._failure()  # noqa: TRY301 - one place ends what has not started
            except BaseException:
                await asyncio.shield(sandbox.end("it did not start"))
                raise
            finally:
                (place / CHANNEL).unlink(missing_ok=True)
        assert sandbox._process.stderr is not None
        sandbox._process.stderr.close()
        return sandbox

    @property
    def pid(self) -> int:
        """The process that holds all others."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked anything."""
        return self._transport is not None and self._ending is None

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request, unless it has ended."""
        if self._transport is not None:
            text = json.dumps(request, allow_nan=False).encode()
            self._transport.write(ipc.HEADER.pack(len(text), 0) + text)

    async def answer(self, within_s: float) -> dict[str, Any] | None:
        """Return the next answer, or None if the sandbox has ended.

        Raises:
            TimeoutError: if neither comes in time.
        """
        if self._transport is None:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        self._decode()
        try:
            async with asyncio.timeout(within_s):
                return await self._answer
        finally:
            self._answer = None

    def end(self, why: str) -> asyncio.Future[None]:
        """End all that runs in it, if that has not begun before; the future is done when nothing is left."""
        if self._ending is None:
            self.why = self.why or why
            self._ending = asyncio.get_running_loop().run_in_executor(THREADS, _end, self._process, self._cleanup)
            if self._transport is not None:
                self._transport.abort()
        return self._ending

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take in a piece of an answer; what is none ends the sandbox."""
        self._buffer += data
        self._decode()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - any end is an end
        """Note that the supervisor has ended, and see to it that all else does."""
        self._transport = None
        self._buffer.clear()
        self._reply(None)
        self.end("")

    def _decode(self) -> None:
        size = ipc.HEADER.size
        while self._answer is not None and not self._answer.done() and len(self._buffer) >= size:
            length, descriptors = ipc.HEADER.unpack_from(self._buffer)
            if length > self._longest or descriptors:
                self.end("it broke the protocol")
                return
            if len(self._buffer) < size + length:
                return
            try:
                message = ipc.decode(bytes(self._buffer[size : size + length]))
            except ipc.FrameError:
                self.end("it broke the protocol")
                return
            del self._buffer[: size + length]
            self._reply(message)
        if len(self._buffer) > size + self._longest:
            self.end("it broke the protocol")

    def _reply(self, message: dict[str, Any] | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(message)

    async def _accepted(self, listener: socket.socket) -> socket.socket:
        accepting = asyncio.ensure_future(asyncio.get_running_loop().sock_accept(listener))
        try:
            async with asyncio.timeout(_START_S):
                while not accepting.done():
                    await asyncio.wait({accepting}, timeout=_POLL_S)
                    if not accepting.done() and self._process.poll() is not None:
                        raise self._failure()
            return (await accepting)[0]
        except TimeoutError:
            raise self._failure() from None
        finally:
            accepting.cancel()

    def _failure(self) -> ReBenchError:
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        said = (self._process.stderr.read() or b"").decode(errors="replace").strip()[-_TAIL:]
        return ReBenchError(f"the shell's sandbox did not start: {said or self._process.poll()}")


def _listen(listener: socket.socket, place: Path) -> None:
    """Bind a socket in ``place``, whose path may be longer than an address can be."""
    (place / CHANNEL).unlink(missing_ok=True)
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{CHANNEL}")
    finally:
        os.close(directory)
    (place / CHANNEL).chmod(0o666)  # the sandbox is another user
    listener.listen(1)
    listener.settimeout(0)


def _started(launch: Launch) -> subprocess.Popen[bytes]:
    """Start the command; by the loop's thread, since a sandbox dies with the thread that started it."""
    try:
        return subprocess.Popen(
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=launch.descriptors,
            env=launch.environment,
        )
    except OSError as error:
        launch.cleanup()
        raise ReBenchError(f"the shell's sandbox cannot be started: {error}") from None
    finally:
        for descriptor in launch.descriptors:
            os.close(descriptor)


def _end(process: subprocess.Popen[bytes], cleanup: Callable[[], None]) -> None:
    end_process(process)
    cleanup()
    if process.stderr is not None:
        with suppress(OSError):
            process.stderr.close()
