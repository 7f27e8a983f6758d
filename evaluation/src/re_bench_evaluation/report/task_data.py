"""The tasks of a report, and what its figures have in common, as plain data; see ``data``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from re_bench.normalise import How

FlagKind = Literal[
    "modelled", "stand_in", "published_anchors", "no_anchors", "instances", "hardware", "scorers", "budgets",
    "few_runs", "failed_runs", "unfinished_runs", "damaged_runs", "clock", "tasks", "below_zero", "final_scores",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over ``n`` runs, with its 95 % interval; ``low`` and ``high`` are None for fewer than two runs."""

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Flag:
    """What a reader must know of a figure, such as that it is modelled."""

    kind: FlagKind
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, or only in part; nothing is left out of a report without one."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class AnchorsInfo:
    """The two scores that make the scale from 0 to 1, and where they come from."""

    starting: float
    reference: float
    kind: str
    """``published``, ``measured`` or ``modelled``."""
    where: str
    hardware: str | None = None
    model: str | None = None
    date: str | None = None
    age_days: int | None = None
    """At the time of the report."""
    repeats: int | None = None
    starting_spread: float | None = None
    """The standard deviation over the repeats, in the raw score's unit; so is ``reference_spread``."""
    reference_spread: float | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """One of the task's own solutions as the last validation found it."""

    variant: str
    status: str
    raw: float | None
    reward: float | None
    spread: float | None
    repeats: int
    seconds: float
    holds: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ValidationInfo:
    """The newest validation of a task in a profile among the files that were given."""

    source: str
    time: str
    """When its file was last written."""
    holds: bool
    rows: tuple[ValidationRow, ...]
    note: str = ""
    problems: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task in one profile, as it was when its runs were made; runs of different ones are never averaged."""

    key: str
    """``name/profile/v1``, with a number where several differ in anchors, model or rules: ``name/cpu/v1#2``."""
    name: str
    id: str
    title: str
    profile: str
    version: int
    direction: Literal["higher", "lower"]
    aggregation: How
    unit: str
    anchors: AnchorsInfo | None
    """None where there are none, or each scoring measures its own."""
    modelled: bool
    model: str | None
    """The chat model that submissions may ask."""
    stand_in: bool
    flags: tuple[Flag, ...] = ()
    validation: ValidationInfo | None = None
