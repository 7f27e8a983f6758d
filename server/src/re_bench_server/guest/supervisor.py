"""The supervisor, the first program in a session's sandbox: it runs commands in a bash, which it restarts.

``python -c "..." SOCKET OPTIONS`` connects to the server and carries out its requests, in messages of
:mod:`re_bench.guest.ipc`, until the connection ends; then the sandbox ends with it. The server trusts nothing
that it sends: commands run as the same user and can change or kill this process.
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
from functools import partial
from typing import Any

from re_bench.guest import ipc
from re_bench.guest.truncate import HeadTail
from re_bench_server.guest.bash import Bash, CommandOutput
from re_bench_server.guest.child_programs import Programs
from re_bench_server.guest.processes import (
    Process,
    Service,
    descendants,
    kill_until_gone,
    list_processes,
    signal_all,
    started_since,
)

_CHUNK = 1 << 16
_BACKGROUND_BYTES = 1 << 13
_MAX_REQUEST = 1 << 26
"""What the server sends is trusted; this is beyond what a command line can be."""
_PROCESS_GRACE_S = 0.5
"""How long a command's processes have to end after an interrupt, before they are killed."""
_SHELL_GRACE_S = 2.5
"""How long the shell has to return after an interrupt, before it is killed."""
_KILL_GRACE_S = 2.0
"""How long a reply waits for killed processes to be gone: the kernel may be busy with one."""
_RETRY_S = 0.05
_NOTED_SHARE = 0.75
_NICE = 5
_INT_BYTES = 4


class RunningCommand:
    """A command while it runs."""

    def __init__(
        self, number: int, timeout_s: float, output: CommandOutput, before: dict[int, Process], shell: set[int]
    ) -> None:
        """Begin a command that may run for ``timeout_s``; see :func:`started_since` for ``before`` and ``shell``."""
        self.number = number
        self.output = output
        self.before = before
        self.shell = shell
        self.started = time.monotonic()
        self.deadline = self.started + timeout_s
        self.next_check = self.deadline
        """When to stop it, or to try again."""
        self.timed_out = False


class Supervisor:
    """Serves the connection, bash and services in one loop."""

    def __init__(self, channel: socket.socket, options: dict[str, Any]) -> None:
        """Serve ``channel``; see :meth:`re_bench_server.shell.shell.Shell.open` for the options."""
        self.channel = channel
        self.guest_files: str = options["guest_files"]
        self.workspace: str = options["workspace"]
        self.directory: str = options["directory"]
        self.process_limit: int = options["processes"]
        self.output_bytes: int = options["output_bytes"]
        self.output_directory: str = options["output_directory"]
        self.sandboxed: bool = options["sandboxed"]
        self.services = [Service(command) for command in options["services"]]
        self.output, self.output_end = os.pipe()
        os.set_blocking(self.output, False)  # it may have been emptied in the same round
        self.background = HeadTail(_BACKGROUND_BYTES)
        self.notes: list[str] = []
        self.bash: Bash | None = None
        self.command: RunningCommand | None = None
        self.end_reason = ""
        self.selector = selectors.DefaultSelector()
        self.selector.register(channel, selectors.EVENT_READ, self.on_request)
        self.selector.register(self.output, selectors.EVENT_READ, self.on_output)
        self.programs = Programs(self.selector, partial(ipc.send, channel))

    def run(self) -> None:
        """Serve until the connection ends."""
        self.start()
        ipc.send(self.channel, {"ready": True})
        while True:
            times = [self.programs.check(), self.command.next_check if self.command else None]
            next_check = min((when for when in times if when is not None), default=None)
            wait = None if next_check is None else max(0.0, next_check - time.monotonic())
            for key, _events in self.selector.select(wait):
                if self.selector.get_map().get(key.fd) is key:  # else it was closed in this round
                    key.data()
            if self.command and time.monotonic() >= self.command.next_check:
                self.time_out(self.command)

    def start(self) -> None:
        """Start bash and the services, unless they run."""
        self.start_services()
        if self.bash is None:
            for directory in (self.directory, self.workspace, "/"):
                with suppress(OSError):
                    os.chdir(directory)
                    break
            self.bash = Bash(self.guest_files, self.output_end)
            self.selector.register(self.bash.reports, selectors.EVENT_READ, self.on_report)
            self.selector.register(self.bash.ended, selectors.EVENT_READ, self.on_end)

    def start_services(self) -> None:
        """Start the services that do not run."""
        for service in self.services:
            if not service.alive():
                service.start()

    def on_request(self) -> None:
        """Carry out a request of the server: a command, a program, the end of one, or of everything."""
        request, descriptors = ipc.receive(self.channel, _MAX_REQUEST, accept_descriptors=True)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only argument
        if "execute" in request:
            with suppress(OSError):  # the program cannot be started either, and says so
                self.start_services()
            self.programs.start(request, descriptors)
        elif "drain" in request:
            self.programs.drain(descriptors)
        elif "kill" in request:
            self.programs.end(request["kill"])
        elif "run" in request:
            try:
                self.start()
            except OSError as error:  # the limit on processes is reached, for example
                self.end_all(f"the shell could not be started ({error.strerror})")
                self.start()
            assert self.bash is not None
            output = CommandOutput(self.output_directory, request["run"], self.output_bytes)
            shell = {1, os.getpid(), self.bash.pid}
            self.command = RunningCommand(request["run"], request["timeout_s"], output, self.visible_processes(), shell)
            self.bash.begin(self.command.number)
        elif "interrupt" in request and self.command and self.command.number == request["interrupt"]:
            self.command.next_check = self.command.deadline = time.monotonic()
        elif "end" in request:
            self.end_all(request["end"])

    def on_output(self) -> None:
        """Take in output, of a command or of background processes after it."""
        with suppress(BlockingIOError):
            (self.command.output if self.command else self.background).add(os.read(self.output, _CHUNK))

    def on_report(self) -> None:
        """Finish the command that bash reports on."""
        status = self.bash.report(self.command.number) if self.bash and self.command else None
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
        if not self.end_reason:
            ending = "a signal" if status > 128 else "exit"  # noqa: PLR2004 - as in bash
            reason = f"the shell ended ({ending}, status {status})"
            if self.command and self.command.timed_out:
                reason = "the shell could not be interrupted and was ended"
            self.notes.append(
                f"{reason}; the next command has a new one in {self.directory}, without this one's variables, "
                "functions and options; background processes go on"
            )
        self.finish(status)

    def time_out(self, command: RunningCommand) -> None:
        """Interrupt a command that is past its deadline, and kill what does not end then."""
        now = time.monotonic()
        command.timed_out = True
        command.next_check = now + _RETRY_S
        overrun = now - command.deadline
        signal_all(self.started_by(command), signal.SIGINT if overrun < _PROCESS_GRACE_S else signal.SIGKILL)
        if self.bash and overrun >= _SHELL_GRACE_S:
            signal_all([self.bash.pid], signal.SIGKILL)
        elif self.bash:
            self.bash.interrupt()
            self.bash.request_report(command.number)

    def finish(self, status: int) -> None:
        """Send the server the reply to the command."""
        command, self.command = self.command, None
        if command is None:
            return
        if command.timed_out:
            kill_until_gone(partial(self.started_by, command), _KILL_GRACE_S)
        for data in self.drain_output():
            command.output.add(data)
        directory = self.bash.directory() if self.bash else None
        self.directory = directory or self.directory
        text, file = command.output.end()
        self.note_process_count(command)
        reply = {
            "done": command.number,
            "status": None if command.timed_out or self.end_reason else status,
            "timed_out": command.timed_out,
            "seconds": time.monotonic() - command.started,
            "text": text,
            "file": file,
            "background_text": self.background.text(),
            "notes": self.notes,
            "directory": self.directory,
        }
        self.notes, self.background, self.end_reason = [], HeadTail(_BACKGROUND_BYTES), ""
        ipc.send(self.channel, reply)

    def note_process_count(self, command: RunningCommand) -> None:
        """Say so when most of the processes that may run do: nobody would know why each command takes seconds."""
        count = sum(process.threads for process in command.before.values())
        if command.timed_out:  # it may have been what started them
            count = max(count, sum(process.threads for process in self.visible_processes().values()))
        if count >= _NOTED_SHARE * self.process_limit:
            self.notes.append(
                f"{count} of at most {self.process_limit} processes and threads run, so that commands are slow or "
                "cannot be started; `kill -9 -1` ends all of them, this shell too"
            )

    def end_all(self, reason: str) -> None:
        """Kill everything but this process, for a reason that is in the next reply."""
        self.end_reason = reason
        self.notes.append(f"{reason}; all processes of the session were ended")
        self.programs.note_end_of_all()
        kill_until_gone(lambda: [pid for pid in self.visible_processes() if pid not in {1, os.getpid()}])
        self.on_end()
        if not self.command:
            self.end_reason = ""

    def visible_processes(self) -> dict[int, Process]:
        """Return the processes of the session; without a sandbox only descendants of this one are known to be its."""
        now = list_processes()
        return now if self.sandboxed else descendants(os.getpid(), now)

    def started_by(self, command: RunningCommand) -> list[int]:
        """Return the processes that a command has started and that still run."""
        now = self.visible_processes()
        started = started_since(command.before, now, command.shell)
        return [pid for pid in started if not self.programs.owns(now[pid])]

    def drain_output(self) -> list[bytes]:
        """Return what is in the pipe now, without waiting for more."""
        size = fcntl.ioctl(self.output, termios.FIONREAD, bytes(_INT_BYTES))
        remaining = int.from_bytes(size, sys.byteorder)
        chunks = []
        while remaining > 0:
            chunks.append(os.read(self.output, min(remaining, _CHUNK)))
            remaining -= len(chunks[-1])
        return chunks


def main() -> None:
    """Connect to the server and serve."""
    address, options = sys.argv[1], json.loads(sys.argv[2])
    with suppress(OSError):
        os.nice(_NICE)
        # Where the kernel schedules processor time by sessions, the niceness of the session counts.
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:  # noqa: PTH123 - as elsewhere here
            file.write(str(_NICE))
    channel = socket.socket(socket.AF_UNIX)
    directory, _slash, name = address.rpartition("/")
    os.chdir(directory)  # the whole path may be longer than an address can be
    channel.connect(name)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):  # errors at the start go to stderr
        os.dup2(null, fd)
    supervisor = Supervisor(channel, options)
    with suppress(ipc.FrameError, ConnectionError):  # the server has ended, or has closed the connection
        supervisor.run()
    if not supervisor.sandboxed:  # else they end with the sandbox
        with suppress(ConnectionError):
            supervisor.end_all("the server has ended")
