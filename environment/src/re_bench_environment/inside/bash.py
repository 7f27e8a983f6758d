"""The bash that keeps a session's state: directory, variables, functions, options, jobs."""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress

__all__ = ["COMMAND", "EVALUATE", "Bash"]

COMMAND = "/command"
"""The name of the file with the next command, after the directory of ours."""
EVALUATE = "/evaluate"
"""The name of the file that bash is to read, which has it evaluate the other one."""

_OUTPUT, _REPORT = 250, 251
"""Descriptors in bash: where commands write, and where it reports. Commands themselves do not have them."""
_START = b"set +H +o history -m\nshopt -s execfail\nunset HISTFILE MAILCHECK\nPS1= PS2=\n"
_DEFAULTS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_SUBSTITUTIONS = (b"$(", b"<(", b">(")
_LONGEST_REPORT = 1 << 16


class Bash:
    """An interactive bash without a terminal: an interrupt ends what it does, and leaves it as it was.

    It reads lines from a pipe. Each command is a file whose text it evaluates, with stdin at /dev/null, so that a
    command's quotes, redirections and ``return`` end with the command.

    It does so in a file that it sources, where it does not say on stderr what it would say to a person at a terminal.
    """

    def __init__(self, place: str, output: int) -> None:
        """Start one in the current directory.

        Args:
            place: the directory with the file of the next command.
            output: the descriptor of the pipe that commands write to.

        Raises:
            OSError: if there can be no more processes, say.
        """
        self._place = place
        lines, self._lines = os.pipe()
        self.reports, report = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        ends = [lines, report, null]
        try:
            # No descriptor may be in the way of the numbers that bash gets.
            ends += [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _REPORT + 1) for each in (output, report)]
            self.pid = os.posix_spawnp(
                "bash",
                ["bash", "--noprofile", "--norc", "--noediting", "-i"],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, lines, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                    (os.POSIX_SPAWN_DUP2, ends[-2], _OUTPUT),
                    (os.POSIX_SPAWN_DUP2, ends[-1], _REPORT),
                ],
                setpgroup=0,
                setsigdef=_DEFAULTS,
                setsigmask=(),
            )
        except BaseException:
            os.close(self._lines)
            os.close(self.reports)
            raise
        finally:
            for each in ends:
                os.close(each)
        os.set_blocking(self._lines, False)
        os.set_blocking(self.reports, False)
        self.ended = os.pidfd_open(self.pid)
        self._feed(_START)

    def begin(self, number: int) -> None:
        """Begin the next command."""
        file = self._place + COMMAND
        how = f'eval "$(<{file})"' if _is_broken(file) else f"source {self._place}{EVALUATE}"
        self._feed(f"\\builtin {how} </dev/null >&{_OUTPUT} 2>&1 {_OUTPUT}>&- {_REPORT}>&-\n".encode())
        self.ask(number)

    def ask(self, number: int) -> None:
        """Ask for a report on a command, whose exit status is the last one."""
        self._feed(f'\\builtin echo "{number}:$?" >&{_REPORT}\n'.encode())

    def interrupt(self) -> None:
        """Have it give up what it does, also where it was stopped."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGINT)

    def report(self, number: int) -> int | None:
        """Return the exit status of a command, or None if it has not been reported yet."""
        with suppress(OSError):
            for line in os.read(self.reports, _LONGEST_REPORT).split():
                told, _colon, status = line.partition(b":")
                if told == b"%d" % number and status.isdigit():
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
        for each in (self._lines, self.reports, self.ended):
            os.close(each)
        return 128 - status if status < 0 else status

    def _feed(self, lines: bytes) -> None:
        with suppress(OSError):  # it may have ended, or not have read for long: then no report comes
            os.write(self._lines, lines)


def _is_broken(file: str) -> bool:
    """Tell whether a command may end within ``$(``: sourced, that breaks bash 5.2, which then ends some time later."""
    with suppress(OSError), open(file, "rb") as command:  # noqa: PTH123 - pathlib costs every session memory
        text = command.read()
        if any(begin in text for begin in _SUBSTITUTIONS):
            null = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
            pid = os.posix_spawnp("bash", ["bash", "--norc", "-n", file], os.environ, file_actions=null)
            return os.waitpid(pid, 0)[1] != 0
    return False
