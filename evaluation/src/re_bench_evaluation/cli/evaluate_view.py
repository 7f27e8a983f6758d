"""How an evaluation is shown while it runs: a table in a terminal, lines elsewhere."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from re_bench.processes import print_progress
from re_bench.tables import printable
from re_bench_evaluation.report.evaluation_tables import CELL_HEADER, cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.records import RunRecord

_LINES = 5
_LEFT = 3
"""Columns with names; the others have numbers."""


class LineView:
    """A line on stderr for each event."""

    def happened(self, run: str, text: str) -> None:
        """Print it."""
        print_progress(f"{_now()} {run}: {printable(text)}")

    def update(self, runs: Mapping[str, RunRecord]) -> None:
        """Do nothing: events tell enough."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return


class LiveView:
    """A table of the cells on stderr that is kept up to date, with the last events below."""

    def __init__(self) -> None:
        self._events: list[str] = []
        self._live = Live(console=Console(stderr=True), auto_refresh=False, vertical_overflow="ellipsis")

    def happened(self, run: str, text: str) -> None:
        """Show it among the last events."""
        self._events = [*self._events, f"{_now()} {run}: {printable(text)}"][-_LINES:]

    def update(self, runs: Mapping[str, RunRecord]) -> None:
        """Show the cells as they are now."""
        shown = Table(box=SIMPLE_HEAD, padding=0)
        for index, name in enumerate(CELL_HEADER):
            if index < _LEFT:
                shown.add_column(name, overflow="fold")
            else:  # in a narrow terminal names take more lines, and figures stay whole
                shown.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
        for cell in cells(runs.values()):
            shown.add_row(*map(escape, cell.row()))
        self._live.update(Group(shown, *(Text(line, overflow="ellipsis", no_wrap=True) for line in self._events)))
        self._live.refresh()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def _now() -> str:
    return dt.datetime.now(dt.UTC).astimezone().strftime("%H:%M:%S")
