"""What a check finds: problems, each in a line of a file, and notes about what cannot be judged here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, and what to do."""

    path: Path
    line: int
    """From 1."""
    text: str
    """What is wrong, and what to do."""
    mend: Callable[[], object] | None = field(default=None, compare=False)
    """Mends it, where a program can: reads the file anew, and writes it."""

    def __str__(self) -> str:
        """Return ``file:line: what is wrong``, the file relative to the working directory where it lies below."""
        return f"{shown(self.path)}:{self.line}: {self.text}"


@dataclass(frozen=True)
class Note:
    """Something that cannot be judged here, or is not wrong but should be known."""

    path: Path
    text: str

    def __str__(self) -> str:
        """Return ``file: note``."""
        return f"{shown(self.path)}: {self.text}"


@dataclass(frozen=True)
class Report:
    """All that was found."""

    problems: tuple[Problem, ...]
    notes: tuple[Note, ...]
    is_checked: bool = True
    """Whether the files were looked at."""


def shown(path: Path) -> str:
    """Return a path as people see it: relative to the working directory where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def line_with(text: str, part: str) -> int:
    """Return the first line that ``part`` is in, from 1; 1 if it is in none."""
    before, found, _after = text.partition(part)
    return before.count("\n") + 1 if found else 1
