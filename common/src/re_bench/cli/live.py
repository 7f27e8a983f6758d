"""A display on stderr that is drawn again while a command works, with the lines that programs print above it."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from re_bench.tables import clock, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_STDERR = 2
_PER_SECOND = 4
_END_TIMEOUT_S = 1.0
_LEAST_ROWS = 3
_FRAME = 12
"""Lines of the terminal that are left to the title, the header and the lines above."""

Display = tuple[str, "Sequence[str]", "Sequence[Sequence[str]]"]
"""A title, the header of a table, and its rows."""


def has_live_terminal() -> bool:
    """Tell whether stderr is a terminal in which a display can be drawn again; one with ``TERM=dumb`` is none."""
    return sys.stderr.isatty() and not Console(stderr=True).is_dumb_terminal


@contextmanager
def live_display(display: Callable[[], Display], *, wanted: bool = True) -> Iterator[None]:
    """Draw what ``display`` returns several times a second, as long as the block lasts, where stderr is a terminal.

    The file descriptor of stderr is taken over, so that programs that we run write above the table. It is gone when the
    block ends.

    Args:
        display: is called from another thread; what it returns may hold anything that a stranger wrote.
        wanted: False to show nothing, as elsewhere.
    """
    if not (wanted and has_live_terminal()):
        yield
        return
    began = time.monotonic()
    sys.stderr.flush()
    terminal, (reading, writing) = os.dup(_STDERR), os.pipe()
    with os.fdopen(terminal, "w", encoding="utf-8", errors="backslashreplace") as file:
        size = os.get_terminal_size(terminal)
        console = Console(file=file, width=size.columns, height=size.lines)
        live = Live(
            get_renderable=lambda: _drawn(display(), time.monotonic() - began, console.height),
            console=console,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        reader = threading.Thread(target=_pass_on, args=(reading, console), name="re-bench-stderr", daemon=True)
        os.dup2(writing, _STDERR)
        os.close(writing)
        reader.start()
        try:
            with live:
                yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, _STDERR)
            reader.join(_END_TIMEOUT_S)  # it ends with the last program that holds the other end, which may be never


def _pass_on(descriptor: int, console: Console) -> None:
    """Print above the display what is written to stderr, without what a terminal would obey."""
    with os.fdopen(descriptor, encoding="utf-8", errors="backslashreplace") as file:
        for line in file:
            console.print(Text(printable(line)), soft_wrap=True)


def _drawn(display: Display, seconds: float, height: int) -> Table:
    title, header, rows = display
    room = max(_LEAST_ROWS, height - _FRAME)
    more = f", and {len(rows) - room} more" if len(rows) > room else ""
    table = Table(title=f"{title}  {clock(seconds)}{more}", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
    for name in header:
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    for row in rows[:room]:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
