"""Plain tables that read well in a terminal, in a log and in a document."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHORT_H = 0.1


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has that stdout is, or None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return ``rows`` under ``header`` in columns as wide as their widest cell; the last column is not padded."""
    everything = [header, *rows]
    widths = [max(len(row[column]) for row in everything) for column in range(len(header) - 1)]
    rule = ["-" * width for width in (*widths, len(header[-1]))]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in (header, rule, *rows)
    )


def printable(text: str) -> str:
    """Return a text that anybody may have written as one line, without what a terminal would obey."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in " ".join(text.split()))


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a cell, a dash for none."""
    return "-" if value is None else f"{value:z.{digits}f}"  # z: no minus before a zero


def hours(value: float | None) -> str:
    """Return hours for a cell, a dash for none; of a few minutes two figures are shown, not 0.01."""
    return "-" if value is None else f"{value:.2f}" if value >= _SHORT_H or value <= 0 else f"{value:.2g}"


def dollars(cost: float | None) -> str:
    """Return a cost for a cell, a dash where it is not known."""
    return "-" if cost is None else f"${cost:.4f}"


def clock(seconds: float) -> str:
    """Return a duration as on a stopwatch: ``0:07``, ``12:30``, ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours_passed, minutes = divmod(minutes, 60)
    return f"{hours_passed}:{minutes:02}:{rest:02}" if hours_passed else f"{minutes}:{rest:02}"
