"""Programs beside the shell, several at a time: the server asks for each by number, and gives it its pipes."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from re_bench_server.guest.processes import DEFAULT_SIGNALS, descendants, list_processes, signal_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from re_bench_server.guest.processes import Process

MARK = "RE_BENCH_PROGRAM"
"""The variable by which a program's processes are known, whatever session they are in."""

_TERM_S = 0.5
"""How long a program that has to end may take after SIGTERM, before it is killed with all that it started."""
_RETRY_S = 0.05
_STOP_ROUNDS = 50
_CHUNK = 1 << 16
_MAX_DRAINED = 128


class Program:
    """A program from its start to its end, and to the end of what it has started if it has to end."""

    def __init__(self, number: int, command: list[str], variables: Mapping[str, str], pipes: Sequence[int]) -> None:
        """Start it in the current directory, in a session of its own.

        Args:
            number: what the server calls it.
            command: the program, which is looked up in the ``PATH`` that it gets, and its arguments.
            variables: beside those of the sandbox.
            pipes: its stdin, stdout and stderr.

        Raises:
            OSError: if it cannot be started.
            ValueError: if there is a text that the system cannot take.
        """
        self.number = number
        self.mark = _mark(number)
        self.status: int | None = None
        """Exit status, or 128 and the number of the signal that killed it; None while it runs."""
        self.ended_with_all = False
        """Whether it was ended with everything else."""
        self.next_check: float | None = None
        """When to look for what still runs, if it has to end."""
        self._kill_time = 0.0
        self.pid = _spawn(command, {**os.environ, **variables, MARK: self.mark}, pipes)
        self.ended = os.pidfd_open(self.pid)

    def end(self) -> None:
        """Ask all its processes to end, and begin to check that they do."""
        if self.next_check is None:
            for number in (signal.SIGTERM, signal.SIGCONT):
                signal_all(self._processes(), number)
            self.next_check, self._kill_time = time.monotonic(), time.monotonic() + _TERM_S

    def check(self) -> bool:
        """Kill what has not ended in time; tell whether nothing of it is left."""
        if not self._processes():
            return self.status is not None
        if time.monotonic() >= self._kill_time:
            self._kill()
        self.next_check = time.monotonic() + _RETRY_S
        return False

    def reap(self) -> None:
        """Note how it has ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.ended)
        self.status = 128 - status if status < 0 else status

    def _processes(self) -> set[int]:
        now = list_processes()
        # A process that has lost its parent and its session still has the mark, unless it has removed that too.
        own = {pid for pid, process in now.items() if process.session == self.pid or mark_of(pid) == self.mark}
        return own.union(descendants(self.pid, now), {self.pid} & set(now))

    def _kill(self) -> None:
        """Kill all its processes at a standstill, so that none starts another meanwhile."""
        stopped: set[int] = set()
        for _round in range(_STOP_ROUNDS):
            more = self._processes() - stopped
            if not more:
                break
            signal_all(more, signal.SIGSTOP)
            stopped |= more
        signal_all(stopped, signal.SIGKILL)


class Programs:
    """All programs that run, or that have ended and left processes behind that write to their pipes."""

    def __init__(self, selector: selectors.BaseSelector, send: Callable[[dict[str, Any]], None]) -> None:
        """Begin with none; ``send`` takes replies to the server."""
        self._selector = selector
        self._send = send
        self._running: dict[int, Program] = {}
        self._drained: list[int] = []

    def start(self, request: Mapping[str, Any], pipes: Sequence[int]) -> None:
        """Start the program of a request, in its directory, or reply why that is not possible."""
        number: int = request["execute"]
        in_directory = False
        try:
            os.chdir(request["directory"])
            in_directory = True
            program = Program(number, request["command"], request["environment"], pipes)
        except (OSError, ValueError) as error:
            code = getattr(error, "errno", None) or errno.EINVAL
            self._send({"program": number, "errno": code, "in_directory": in_directory})
        else:
            self._running[number] = program
            self._selector.register(program.ended, selectors.EVENT_READ, partial(self._on_end, program))
        finally:
            for pipe in pipes:
                os.close(pipe)

    def end(self, number: int) -> None:
        """End a program and all that it has started; the reply follows when nothing of it is left."""
        if number in self._running:
            self._running[number].end()

    def note_end_of_all(self) -> None:
        """Note that everything was ended: none of the programs ended by itself."""
        for program in self._running.values():
            program.ended_with_all = True

    def drain(self, pipes: Sequence[int]) -> None:
        """Read what comes and forget it: a process that outlives its program must not fail when it writes."""
        for pipe in pipes:
            self._drained.append(pipe)
            self._selector.register(pipe, selectors.EVENT_READ, partial(self._on_data, pipe))
        while len(self._drained) > _MAX_DRAINED:
            self._close(self._drained[0])

    def check(self) -> float | None:
        """Look after the programs that have to end; return when to do so again."""
        now = time.monotonic()
        for program in list(self._running.values()):
            if program.next_check is not None and now >= program.next_check and program.check():
                self._finish(program)
        return min((p.next_check for p in self._running.values() if p.next_check is not None), default=None)

    def owns(self, process: Process) -> bool:
        """Tell whether a program has started the process."""
        return mark_of(process.pid).startswith(_mark("")) or any(
            process.session == program.pid for program in self._running.values()
        )

    def _on_end(self, program: Program) -> None:
        self._selector.unregister(program.ended)
        program.reap()
        if program.next_check is None or program.check():
            self._finish(program)

    def _finish(self, program: Program) -> None:
        del self._running[program.number]
        self._send({"program": program.number, "status": None if program.ended_with_all else program.status})

    def _on_data(self, pipe: int) -> None:
        with suppress(BlockingIOError):
            if not os.read(pipe, _CHUNK):
                self._close(pipe)

    def _close(self, pipe: int) -> None:
        self._selector.unregister(pipe)
        self._drained.remove(pipe)
        os.close(pipe)


def mark_of(pid: int) -> str:
    """Return the mark of the program that has started a process; empty if there is none, or it was removed."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - as in processes.py
        for variable in file.read().split(b"\0"):
            name, _equals, value = variable.partition(b"=")
            if name == MARK.encode():
                return value.decode(errors="replace")
    return ""


def _mark(number: int | str) -> str:
    # Without a sandbox the processes of other supervisors can be seen.
    return f"{os.getpid()}.{number}"


def _spawn(command: list[str], variables: Mapping[str, str], pipes: Sequence[int]) -> int:
    refused: OSError | None = None
    for path in _candidates(command[0], variables):
        try:
            return os.posix_spawn(
                path,
                command,
                variables,
                file_actions=[(os.POSIX_SPAWN_DUP2, pipe, target) for target, pipe in enumerate(pipes)],
                setsid=True,
                setsigdef=DEFAULT_SIGNALS,
                setsigmask=(),
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            refused = error
    raise refused or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _candidates(name: str, variables: Mapping[str, str]) -> list[str]:
    """Return the paths at which a program may be."""
    if "/" in name or not name:
        return [name]
    return [f"{directory or '.'}/{name}" for directory in variables.get("PATH", os.defpath).split(":")]
