"""The first program in a session's sandbox: it runs commands in a bash that it starts again when that has ended.

``python -c "..." SOCKET OPTIONS`` connects to the server and does what it is told, in frames of
:mod:`re_bench.guest.ipc`, until the connection ends; then the sandbox ends with it. The server believes nothing
of what comes from here: commands run as the same user and can change or kill this process.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import termios
import time
from contextlib import suppress
from typing import Any

from re_bench.guest import ipc
from re_bench.guest.truncate import HeadTail
from re_bench_environment.inside.bash import Bash
from re_bench_environment.inside.output import CommandOutput
from re_bench_environment.inside.processes import Process, begun, below, processes, signal_all
from re_bench_environment.inside.services import Service

__all__ = ["main"]

_PIECE = 1 << 16
_LATE = 1 << 13
_MAX_REQUEST = 1 << 16
_POLITE_S = 0.5
"""How long what a command began has to end after an interrupt, before it is killed."""
_PATIENCE_S = 2.5
"""How long the shell has to come back after an interrupt, before it is ended."""
_AGAIN_S = 0.05
_NICE = 5
_SIZE = 4


class Call:
    """A command while it runs."""

    def __init__(
        self, number: int, timeout_s: float, output: CommandOutput, before: dict[int, Process], ours: set[int]
    ) -> None:
        """Begin a command that may run for ``timeout_s``; see :func:`begun` for ``before`` and ``ours``."""
        self.number = number
        self.output = output
        self.before = before
        self.ours = ours
        self.started = time.monotonic()
        self.deadline = self.started + timeout_s
        self.next = self.deadline
        """When to look after it."""
        self.timed_out = False


class Supervisor:
    """Everything in one loop."""

    def __init__(self, channel: socket.socket, options: dict[str, Any]) -> None:
        """Serve ``channel``; see ``Sandbox`` for the options."""
        self.channel = channel
        self.place: str = options["place"]
        self.home: str = options["home"]
        self.directory: str = options["directory"]
        self.keep: int = options["keep"]
        self.outputs: str = options["outputs"]
        self.contained: bool = options["contained"]
        self.services = [Service(command) for command in options["services"]]
        self.output, self.written = os.pipe()
        os.set_blocking(self.output, False)  # it may have been emptied in the same round
        self.late = HeadTail(_LATE)
        self.notes: list[str] = []
        self.bash: Bash | None = None
        self.call: Call | None = None
        self.ended_for = ""
        self.selector = selectors.DefaultSelector()
        self.selector.register(channel, selectors.EVENT_READ, self.on_request)
        self.selector.register(self.output, selectors.EVENT_READ, self.on_output)

    def run(self) -> None:
        """Serve until the connection ends."""
        self.start()
        ipc.send(self.channel, {"ready": True})
        while True:
            wait = max(0.0, self.call.next - time.monotonic()) if self.call else None
            for key, _events in self.selector.select(wait):
                if key.fd in self.selector.get_map():  # else it was closed in this round
                    key.data()
            if self.call and time.monotonic() >= self.call.next:
                self.give_up(self.call)

    def start(self) -> None:
        """Start what should run and does not: bash, and the services beside it."""
        for service in self.services:
            if not service.alive():
                service.start()
        if self.bash is None:
            for directory in (self.directory, self.home, "/"):
                with suppress(OSError):
                    os.chdir(directory)
                    break
            self.bash = Bash(self.place, self.written)
            self.selector.register(self.bash.reports, selectors.EVENT_READ, self.on_report)
            self.selector.register(self.bash.ended, selectors.EVENT_READ, self.on_end)

    def on_request(self) -> None:
        """Do what the server asks for: run a command, interrupt one, or end everything."""
        request, _none = ipc.receive(self.channel, _MAX_REQUEST, accept_descriptors=False)
        if "run" in request:
            try:
                self.start()
            except OSError as error:  # no process is left, say
                self.end_all(f"the shell could not be started ({error.strerror})")
                self.start()
            assert self.bash is not None
            output = CommandOutput(self.outputs, request["run"], self.keep)
            ours = {1, os.getpid(), self.bash.pid}
            self.call = Call(request["run"], request["timeout_s"], output, self.seen(), ours)
            self.bash.begin(self.call.number)
        elif "interrupt" in request and self.call and self.call.number == request["interrupt"]:
            self.call.next = self.call.deadline = time.monotonic()
        elif "end" in request:
            self.end_all(request["end"])

    def on_output(self) -> None:
        """Take in what is written, by a command or after it in the background."""
        with suppress(BlockingIOError):
            (self.call.output if self.call else self.late).add(os.read(self.output, _PIECE))

    def on_report(self) -> None:
        """Finish the command that bash reports on."""
        status = self.bash.report(self.call.number) if self.bash and self.call else None
        if status is not None:
            self.finish(status)

    def on_end(self) -> None:
        """Note that bash has ended, and finish its command."""
        if self.bash is None:
            return
        self.selector.unregister(self.bash.reports)
        self.selector.unregister(self.bash.ended)
        status = self.bash.reap()
        self.bash = None
        if not self.ended_for:
            how = "a signal" if status > 128 else "exit"  # noqa: PLR2004 - as in bash
            why = f"the shell ended ({how}, status {status})"
            if self.call and self.call.timed_out:
                why = "the shell could not be interrupted and was ended"
            self.notes.append(
                f"{why}; the next command has a new one in {self.directory}, without this one's variables, functions "
                "and options; background processes go on"
            )
        self.finish(status)

    def give_up(self, call: Call) -> None:
        """Interrupt a command that is past its time, and kill what does not heed that."""
        now = time.monotonic()
        call.timed_out = True
        call.next = now + _AGAIN_S
        over = now - call.deadline
        signal_all(self.begun(call), signal.SIGINT if over < _POLITE_S else signal.SIGKILL)
        if self.bash and over >= _PATIENCE_S:
            signal_all([self.bash.pid], signal.SIGKILL)
        elif self.bash:
            self.bash.interrupt()
            self.bash.ask(call.number)

    def finish(self, status: int) -> None:
        """Reply to the server with what came of the command."""
        call, self.call = self.call, None
        if call is None:
            return
        if call.timed_out:
            for number in (signal.SIGCONT, signal.SIGKILL):
                signal_all(self.begun(call), number)
        for data in self.drained():
            call.output.add(data)
        directory = self.bash.directory() if self.bash else None
        self.directory = directory or self.directory
        text, whole = call.output.end()
        reply = {
            "done": call.number,
            "status": None if call.timed_out or self.ended_for else status,
            "timed_out": call.timed_out,
            "seconds": time.monotonic() - call.started,
            "text": text,
            "whole": whole,
            "late": self.late.text(),
            "notes": self.notes,
            "directory": self.directory,
        }
        self.notes, self.late, self.ended_for = [], HeadTail(_LATE), ""
        ipc.send(self.channel, reply)

    def end_all(self, why: str) -> None:
        """Kill everything but this process, for a reason that the next reply tells."""
        self.ended_for = why
        self.notes.append(f"{why}; all processes of the session were ended")
        while others := self.others():
            signal_all(others, signal.SIGKILL)
            time.sleep(_AGAIN_S / 10)
        self.on_end()
        if not self.call:
            self.ended_for = ""

    def seen(self) -> dict[int, Process]:
        """Return the processes of the session; without walls only what descends from this one is sure to be its."""
        now = processes()
        return now if self.contained else below(os.getpid(), now)

    def others(self) -> list[int]:
        """Return all processes of the session but the first and this one."""
        return [pid for pid in self.seen() if pid not in {1, os.getpid()}]

    def begun(self, call: Call) -> list[int]:
        """Return the processes that a command has begun and that still run."""
        return begun(call.before, self.seen(), call.ours)

    def drained(self) -> list[bytes]:
        """Return what is in the pipe now; what goes on to be written comes later."""
        size = fcntl.ioctl(self.output, termios.FIONREAD, bytes(_SIZE))
        left = int.from_bytes(size, sys.byteorder)
        found = []
        while left > 0:
            found.append(os.read(self.output, min(left, _PIECE)))
            left -= len(found[-1])
        return found


def main() -> None:
    """Connect to the server and serve."""
    address, options = sys.argv[1], json.loads(sys.argv[2])
    with suppress(OSError):
        os.nice(_NICE)
        # Where the kernel shares out processor time by sessions, what counts is how nice the session is.
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:  # noqa: PTH123 - as elsewhere here
            file.write(str(_NICE))
    channel = socket.socket(socket.AF_UNIX)
    directory, _slash, name = address.rpartition("/")
    os.chdir(directory)  # the whole path may be longer than an address can be
    channel.connect(name)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # what is wrong at the start is told on stderr
        os.dup2(null, standard)
    with suppress(ipc.FrameError, ConnectionError):  # the server is gone, or has done with us
        Supervisor(channel, options).run()
