"""What a report shows, as plain data: the table in a terminal, ``--json`` and the pages are made from it alone.

``docs/reports.md`` says how each figure is computed. Durations are in seconds where a name ends in ``_s`` and in hours
where it ends in ``_h``; times are ISO 8601 in UTC; what is not known is None. Texts that agents or submissions wrote
are cut to a bound and otherwise as they were: whoever shows them has to escape them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from re_bench_evaluation.report.findings import Severity
    from re_bench_evaluation.report.run_data import RunInfo
    from re_bench_evaluation.report.task_data import Estimate, Flag, Problem, TaskInfo

VERSION = 1
"""Of the JSON that :func:`to_json` gives."""
Clock = Literal["wall", "working"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Invalid attempts that were refused in the same words; figures in a message count as the same words."""

    message: str
    """The newest of these messages."""
    count: int
    runs: int
    """How many runs had one."""
    cheats: tuple[str, ...]
    """The task's checked-in cheats that are refused in the same words; an honest mistake may be refused so, too."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean of the best reward so far over a cell's runs that are over: a step function, from each point to the next."""

    clock: Clock
    hours: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: int


@dataclass(frozen=True, slots=True)
class Cell:
    """The runs of one agent and model at one task in one evaluation. Means are over the runs that are over."""

    evaluation: str
    agent: str
    model: str | None
    task: str
    runs: tuple[str, ...]
    """Keys of all its runs."""
    reward: Estimate
    """Mean of ``RunInfo.counted``."""
    unclipped: Estimate
    """Mean of the rewards as they are, over the runs that have one."""
    above_0: float | None
    """Share of the runs that ended above 0; so ``above_1``."""
    above_1: float | None
    waiting: int
    running: int
    failed: int
    no_valid: int
    """How many of the runs that are over had no valid attempt; they count 0."""
    attempts: int
    invalid: int
    errors: int
    refusals: tuple[Refusal, ...]
    """The most frequent first."""
    dollars: float | None
    """Of all runs together, models of the agent and of the task; None if of no run known."""
    wall_h: float | None
    """Of all runs together; so ``working_h``."""
    working_h: float | None
    curves: tuple[Curve, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """The expected best of ``k`` runs, ``k * t`` hours in all."""

    k: int
    hours: float
    reward: Estimate
    """Averaged over tasks; ``n`` is the smallest number of runs of a task."""


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """The expected best of ``k`` runs of ``run_hours`` each, over the hours of all."""

    evaluation: str
    agent: str
    model: str | None
    profile: str
    clock: Clock
    run_hours: float
    tasks: tuple[str, ...]
    """Keys of the tasks that it is averaged over."""
    points: tuple[BudgetPoint, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """An agent and model of one evaluation; its place is its position in the board."""

    evaluation: str
    agent: str
    model: str | None
    by_task: dict[str, Estimate]
    """By task key; a task that it was not run at is not there."""
    overall: Estimate
    """Over the board's ``shared_tasks``, each weighing the same; ``n`` counts runs."""
    dollars: float | None
    dollars_per_run: float | None
    wall_h: float | None
    """Mean of a run; so ``working_h``."""
    working_h: float | None
    runs: int
    verified: str
    """What was verified of the evaluation, in words."""
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Agents and models that ran in one profile; different profiles have a board each."""

    profile: str
    tasks: tuple[str, ...]
    shared_tasks: tuple[str, ...]
    """The tasks that every row has, over which the overall figures are; none of these if it is empty."""
    rows: tuple[LeaderRow, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class FindingInfo:
    """Something that ``re-bench scan`` has found: a lead for a person, and not a verdict."""

    check: str
    severity: Severity
    text: str
    run: str | None
    """The key of the run; None for what concerns several."""
    attempt: int | None
    """The attempt's number in the run."""
    evidence: str
    """Lines of names and values that a person can check."""


@dataclass(frozen=True, slots=True)
class ScanInfo:
    """The last ``re-bench scan`` of an evaluation. A check without a finding has found nothing."""

    time: str
    checks: tuple[str, ...]
    findings: tuple[FindingInfo, ...]
    """The most serious first."""
    left_out: tuple[str, ...]
    """What could not be looked at, or is not shown here."""
    judge: str
    """The model that was asked; empty if none was."""


@dataclass(frozen=True, slots=True)
class EvaluationInfo:
    """One directory or log that runs were read from."""

    key: str
    """Its name, with a number after it where several have the same."""
    kind: Literal["evaluation", "server", "log"]
    """An evaluation, the state directory of a server, or a plain attempt log."""
    name: str
    path: str
    created: str | None
    plan: dict[str, Any]
    versions: dict[str, str]
    hardware: str | None
    gpus: tuple[str, ...]
    verified: str
    """What was verified of it, in words; ``not verified`` where nothing says."""
    scan: ScanInfo | None = None


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything that a report shows."""

    made: str
    evaluations: tuple[EvaluationInfo, ...]
    tasks: tuple[TaskInfo, ...]
    leaderboards: tuple[Leaderboard, ...]
    cells: tuple[Cell, ...]
    budgets: tuple[BudgetCurve, ...]
    runs: tuple[RunInfo, ...]
    problems: tuple[Problem, ...]
    version: int = VERSION

    def task(self, key: str) -> TaskInfo:
        """Return a task.

        Raises:
            KeyError: if there is none of that key.
        """
        for task in self.tasks:
            if task.key == key:
                return task
        raise KeyError(key)

    def runs_of(self, cell: Cell) -> tuple[RunInfo, ...]:
        """Return the runs of a cell, in its order."""
        by_key = {run.key: run for run in self.runs}
        return tuple(by_key[key] for key in cell.runs)


def to_json(data: ReportData) -> dict[str, Any]:
    """Return a report as JSON values, with the names of the fields as keys."""
    plain = _plain(data)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    """Return JSON values; quicker than ``dataclasses.asdict``, which copies every string's container twice."""
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    names = getattr(value, "__slots__", None)
    return value if names is None else {name: _plain(getattr(value, name)) for name in names}
