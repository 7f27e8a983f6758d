"""What a live display on stderr needs: to know that a terminal is there, and that nobody else writes to it."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleDimensions

from re_bench.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_STDERR = 2
_MOST_LINES = 5000
_END_TIMEOUT_S = 1.0


def has_live_terminal() -> bool:
    """Tell whether stderr is a terminal in which a display can be drawn again; one with ``TERM=dumb`` is none."""
    return sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal


class _TerminalConsole(Console):
    """A console that asks the file which it writes to for its size; rich asks stdin, stdout and stderr."""

    @property  # type: ignore[misc] # rich's can be set, too, which nobody does here
    def size(self) -> ConsoleDimensions:
        """Its columns and rows, as they are now."""
        return ConsoleDimensions(*os.get_terminal_size(self.file.fileno()))


class CapturedStderr:
    """Our stderr and that of the programs that we run, line by line, while the terminal shows something else."""

    def __init__(self, console: Console, lines: deque[str]) -> None:
        """Made by :func:`capture_stderr`."""
        self.console = console
        """Writes to the terminal that stderr was."""
        self.lines = lines
        """The last ones, without what a terminal would obey."""


@contextmanager
def capture_stderr() -> Iterator[CapturedStderr]:
    """Take over the file descriptor of stderr for the block, so that programs that we run cannot disturb a display."""
    sys.stderr.flush()
    terminal = os.dup(_STDERR)
    reading, writing = os.pipe()
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    reader = threading.Thread(target=_read, args=(reading, lines), name="re-bench-stderr", daemon=True)
    with os.fdopen(terminal, "w", encoding="utf-8", errors="backslashreplace") as file:
        os.dup2(writing, _STDERR)
        os.close(writing)
        reader.start()
        try:
            yield CapturedStderr(_TerminalConsole(file=file), lines)
        finally:
            sys.stderr.flush()
            os.dup2(terminal, _STDERR)
            reader.join(_END_TIMEOUT_S)  # it ends with the last program that holds the other end, which may be never


def _read(descriptor: int, lines: deque[str]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="backslashreplace") as file:
        for line in file:
            lines.append(printable(line))
