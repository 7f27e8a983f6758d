"""Programs of ours that run beside a session's shell, such as the way to the gateway."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

__all__ = ["Service"]

_READY_S = 10.0


class Service:
    """A program that prints a line when it is ready, and is started again when it has ended."""

    def __init__(self, command: list[str]) -> None:
        """Describe the service that ``command`` runs; nothing is started yet."""
        self._command = command
        self._pid = 0
        self._output = -1

    def alive(self) -> bool:
        """Tell whether it runs."""
        if not self._pid:
            return False
        with suppress(ChildProcessError):
            if os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                return True
        os.close(self._output)
        self._pid = 0
        return False

    def start(self) -> None:
        """Start it and wait until it is ready, but not for ever: who needs it will see that it is not there.

        Raises:
            OSError: if it cannot be started.
        """
        # The output stays open and unread: what it prints later must not end it.
        self._output, written = os.pipe()
        try:
            self._pid = os.posix_spawnp(
                self._command[0],
                self._command,
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, written, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(written)
        select.select([self._output], [], [], _READY_S)
