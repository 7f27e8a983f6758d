"""The bash that keeps a session's state (directory, variables, functions, options, jobs), and its commands' output."""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress
from typing import IO

from re_bench.guest.truncate import HeadTail
from re_bench_server.guest.processes import DEFAULT_SIGNALS

COMMAND = "/command"
"""The name of the file with the next command, after the directory of our files."""
EVALUATE = "/evaluate"
"""The name of the file that bash sources, which evaluates the other one."""

_OUTPUT, _REPORT = 250, 251
"""Descriptors in bash: where commands write, and where it reports. Commands themselves do not have them."""
_INIT = b"set +H +o history -m\nshopt -s execfail\nunset HISTFILE MAILCHECK\nPS1= PS2=\n"
_SUBSTITUTIONS = (b"$(", b"<(", b">(")
_MAX_REPORT = 1 << 16
_MIB = 1 << 20
_MAX_FILE = 16 * _MIB
_MAX_FILES = 8


class Bash:
    """An interactive bash without a terminal: an interrupt ends what it runs, and keeps its state.

    It reads lines from a pipe. Each command is a file whose text it evaluates, with stdin at /dev/null, so that a
    command's quotes, redirections and ``return`` end with the command.

    It does so in a file that it sources, where it does not write to stderr what it would write at a terminal.
    """

    def __init__(self, guest_files: str, output: int) -> None:
        """Start one in the current directory.

        Args:
            guest_files: the directory with the file of the next command.
            output: the descriptor of the pipe that commands write to.

        Raises:
            OSError: if it cannot be started, for example because of the limit on processes.
        """
        self._guest_files = guest_files
        lines, self._lines = os.pipe()
        self.reports, report = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        inherited = [lines, report, null]
        try:
            # No descriptor may have one of the numbers that bash gets.
            inherited += [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _REPORT + 1) for fd in (output, report)]
            self.pid = os.posix_spawnp(
                "bash",
                ["bash", "--noprofile", "--norc", "--noediting", "-i"],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, lines, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                    (os.POSIX_SPAWN_DUP2, inherited[-2], _OUTPUT),
                    (os.POSIX_SPAWN_DUP2, inherited[-1], _REPORT),
                ],
                setpgroup=0,
                setsigdef=DEFAULT_SIGNALS,
                setsigmask=(),
            )
        except BaseException:
            os.close(self._lines)
            os.close(self.reports)
            raise
        finally:
            for fd in inherited:
                os.close(fd)
        os.set_blocking(self._lines, False)
        os.set_blocking(self.reports, False)
        self.ended = os.pidfd_open(self.pid)
        self._send(_INIT)

    def begin(self, number: int) -> None:
        """Begin the next command."""
        file = self._guest_files + COMMAND
        evaluate = f'eval "$(<{file})"' if _is_broken(file) else f"source {self._guest_files}{EVALUATE}"
        self._send(f"\\builtin {evaluate} </dev/null >&{_OUTPUT} 2>&1 {_OUTPUT}>&- {_REPORT}>&-\n".encode())
        self.request_report(number)

    def request_report(self, number: int) -> None:
        """Ask for a report on a command, whose exit status is the last one."""
        self._send(f'\\builtin echo "{number}:$?" >&{_REPORT}\n'.encode())

    def interrupt(self) -> None:
        """Interrupt what it runs, also where it is stopped."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGINT)

    def report(self, number: int) -> int | None:
        """Return the exit status of a command, or None if it has not been reported yet."""
        with suppress(OSError):
            for line in os.read(self.reports, _MAX_REPORT).split():
                reported, _colon, status = line.partition(b":")
                if reported == b"%d" % number and status.isdigit():
                    return int(status)
        return None

    def directory(self) -> str | None:
        """Return its working directory."""
        with suppress(OSError):
            return os.readlink(f"/proc/{self.pid}/cwd").removesuffix(" (deleted)")  # noqa: PTH115 - as elsewhere here
        return None

    def reap(self) -> int:
        """Return how it has ended: its exit status, or 128 and the number of the signal that killed it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for fd in (self._lines, self.reports, self.ended):
            os.close(fd)
        return 128 - status if status < 0 else status

    def _send(self, lines: bytes) -> None:
        with suppress(OSError):  # it may have ended, or not have read for long: then no report comes
            os.write(self._lines, lines)


def _is_broken(file: str) -> bool:
    """Tell whether a command may end within ``$(``: sourced, that breaks bash 5.2, which then ends some time later."""
    with suppress(OSError), open(file, "rb") as command:  # noqa: PTH123 - pathlib costs every session memory
        text = command.read()
        if any(opening in text for opening in _SUBSTITUTIONS):
            null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
            pid = os.posix_spawnp("bash", ["bash", "--norc", "-n", file], os.environ, file_actions=null)
            return os.waitpid(pid, 0)[1] != 0
    return False


class CommandOutput:
    """The output of a command: head and tail are kept; past ``keep`` bytes all goes into a file too, up to 16 MiB."""

    def __init__(self, directory: str, number: int, keep: int) -> None:
        """Take in the output of a session's command with this number; files are made in ``directory``."""
        self._kept = HeadTail(keep)
        self._keep = keep
        self._directory, self._number = directory, number
        self._file: IO[bytes] | None = None
        self._written = 0
        self._failed = False

    def add(self, data: bytes) -> None:
        """Take in the next part."""
        if self._kept.total + len(data) > self._keep:
            if self._file is None and not self._failed:
                self._open()
                self._write(self._kept.begin())
            self._write(data)
        self._kept.add(data)

    def end(self) -> tuple[str, str | None]:
        """Return the text, its middle left out if it is too long, and the path of the file that then holds it."""
        if self._file is None:
            return self._kept.text(), None
        name = self._file.name
        with suppress(OSError):
            self._file.close()
        if self._written < self._kept.total:
            return self._kept.text(f"; the first {self._written} bytes of all are in {name}"), name
        return self._kept.text(f"; all of it is in {name}"), name

    def _open(self) -> None:
        try:
            os.makedirs(self._directory, exist_ok=True)  # noqa: PTH103 - pathlib costs every session memory
            names = (name for name in os.listdir(self._directory) if name[:-4].isdigit())  # noqa: PTH208
            for name in sorted(names, key=lambda name: int(name[:-4]))[: 1 - _MAX_FILES]:
                os.unlink(f"{self._directory}/{name}")  # noqa: PTH108
            path = f"{self._directory}/{self._number}.txt"
            with suppress(FileNotFoundError):
                os.unlink(path)  # noqa: PTH108
            self._file = open(path, "xb", buffering=0)  # noqa: PTH123, SIM115 - closed at the end of the command
        except OSError:
            self._failed = True

    def _write(self, data: bytes) -> None:
        if self._file is None or self._failed:
            return
        view = memoryview(data)[: _MAX_FILE - self._written]
        try:
            while view:
                written = self._file.write(view)
                self._written += written
                view = view[written:]
        except OSError:  # no space is left
            self._failed = True
