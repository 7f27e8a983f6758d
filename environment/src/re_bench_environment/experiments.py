"""The experiments of a task that has a meter: made outside of the sandbox, by the task's own ``meter.py``.

A session shows a socket of ours in its sandbox. The meter is a program that loads torch, so that it is started by the
first experiment and not before; requests are passed on to it line by line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from re_bench_environment.children import end, environment

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench_environment.offers import Offer

__all__ = ["Experiments", "has_meter"]

_LONGEST_REQUEST = 200
_LONGEST_ANSWER = 16 << 20
_MOST_WAITING = 64
_WAIT_FOR_REQUEST_S = 10.0
_START_S = 900.0  # the first one of all may have to prepare the text
_POLL_S = 0.1


def has_meter(offer: Offer) -> bool:
    """Tell whether a task's experiments are made by a meter."""
    return (offer.task.directory / "meter.py").is_file()


class Experiments:
    """The meter of one session."""

    def __init__(self, offer: Offer, socket: Path, state: Path) -> None:
        """Prepare; :meth:`open` listens.

        Args:
            offer: the task.
            socket: the socket for the sandbox.
            state: the meter's own workspace with its ledger, which no sandbox sees.
        """
        self.socket = socket
        self._offer, self._state = offer, state
        self._inner = socket.with_suffix(".meter")
        self._starting = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._server: asyncio.Server | None = None
        self._waiting = 0
        self._closed = False

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(self._serve, self.socket, limit=_LONGEST_REQUEST)
        self.socket.chmod(0o666)  # the sandbox is another user, and sees what it is shown

    async def close(self) -> None:
        """End the meter and what it runs."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        async with self._starting:  # who has begun to start the meter gives up
            if self._process is not None:
                await end(self._process)
        for path in (self.socket, self._inner):
            path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._waiting += 1
        try:
            answer = await self._answer(reader)
            writer.write(answer)
            await writer.drain()
        except OSError:
            pass  # nobody waits any more
        finally:
            self._waiting -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        if self._waiting > _MOST_WAITING:
            return _refused(f"more than {_MOST_WAITING} experiments wait already")
        try:
            line = await asyncio.wait_for(reader.readline(), _WAIT_FOR_REQUEST_S)
        except TimeoutError:
            return _refused("no request came")
        except ValueError:
            return _refused("a request is a line of JSON: [n_embd, max_iters, seed], all integers")
        if not line:  # it has gone, maybe with its sandbox
            return b""
        try:
            await self._started()
            return await self._asked(line)
        except OSError as error:
            return _refused(f"the meter cannot be reached: {error.strerror or error}")

    async def _asked(self, line: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(self._inner, limit=_LONGEST_ANSWER)
        try:
            writer.write(line.rstrip(b"\n") + b"\n")
            return await reader.readline()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _started(self) -> None:
        """Start the meter unless it runs.

        Raises:
            OSError: if it does not start.
        """
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return
            if self._closed:
                raise OSError("the session has ended")
            self._inner.unlink(missing_ok=True)
            self._process = process = await self._launched()
            deadline = asyncio.get_running_loop().time() + _START_S
            while not self._inner.exists():
                late = self._closed or asyncio.get_running_loop().time() > deadline
                if late or process.returncode is not None:
                    await end(process)
                    raise OSError("it did not start; the operator's log says why")
                await asyncio.sleep(_POLL_S)

    async def _launched(self) -> asyncio.subprocess.Process:
        self._state.mkdir(mode=0o700, exist_ok=True)
        program = [str(self._offer.task.directory / "meter.py"), "--profile", self._offer.profile_name]
        program += ["--socket", str(self._inner), "--state", str(self._state)]
        with (self._state.parent / "meter.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *program,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                start_new_session=True,
            )


def _refused(why: str) -> bytes:
    return json.dumps({"refused": why}).encode() + b"\n"
