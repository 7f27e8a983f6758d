"""What a check has found, and what mends it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench.task.discovery import Task


class Target(NamedTuple):
    """A task that is to run, and the name of its profile, which it has."""

    task: Task
    profile: str


@dataclass(frozen=True)
class Fix:
    """What ``re-bench doctor --fix`` does."""

    commands: tuple[tuple[str, ...], ...]
    file: Path | None = None
    """A file that is written first."""
    content: str = ""
    as_root: bool = True
    """Whether it takes root; else it is done as the user whose programs are meant."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    check: str
    """What was looked at, in a word or two."""
    status: Literal["ok", "note", "problem"]
    """``note``: something is missing that nothing asked for needs."""
    found: str
    """What is there, or what is wrong, on a line."""
    remedy: str = ""
    """What to type or to change."""
    blocks: tuple[str, ...] = ()
    """Names of the tasks that cannot run because of a problem."""
    fix: Fix | None = None
    """The same done by ``--fix``, where a program can."""

    @property
    def reason(self) -> str:
        """What is wrong and what to do, on one line."""
        return f"{self.check}: {self.found}" + (f"; {self.remedy}" if self.remedy else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the finding."""
        fix = self.fix
        writes = {"file": str(fix.file), "content": fix.content} if fix and fix.file else None
        commands = [shlex.join(words) for words in fix.commands] if fix else []
        return {**asdict(self), "fix": commands, "writes": writes}


def names(targets: Iterable[Target]) -> tuple[str, ...]:
    """Return the names of the tasks, each once."""
    return tuple(dict.fromkeys(target.task.name for target in targets))


def reasons(findings: Iterable[Finding]) -> dict[str, str]:
    """Return why tasks cannot run here, by their names."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        for task in finding.blocks:
            found.setdefault(task, []).append(finding.reason)
    return {task: "; ".join(texts) for task, texts in found.items()}


def fix_command() -> str:
    """Return what an ordinary user types to have things mended."""
    return f"sudo {Path(sys.prefix, 'bin', 're-bench')} doctor --fix"
