"""Define the data of a report, from which tables, ``--json`` and the page are made.

``docs/reports.md`` explains how each figure is computed. Names ending in ``_s`` are seconds, in ``_h`` hours; times are
ISO 8601 in UTC; unknown values are None. Texts by agents and submissions are shortened but not escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasPath, Field, FiniteFloat
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from re_bench.attempts.log import Status
    from re_bench.normalise import How
    from re_bench.records import RunState
    from re_bench_evaluation.report.findings import Scan

VERSION = 1
"""Version of the JSON format."""
Clock = Literal["wall", "working"]
FileChange = Literal["added", "removed", "changed"]
FlagKind = Literal[
    "modelled", "stand_in", "published_anchors", "no_anchors", "instances", "hardware", "scorers", "budgets",
    "few_runs", "failed_runs", "unfinished_runs", "damaged_runs", "clock", "tasks", "below_zero", "final_scores",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` runs with its 95 % interval, which is None for fewer than two runs."""

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Flag:
    """A caveat about a figure, such as that scores are modelled."""

    kind: FlagKind
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read completely."""

    path: str
    text: str


def _source(*path: str) -> Any:
    return Field(validation_alias=AliasPath("source", *path))


@dataclass(frozen=True, slots=True)
class AnchorsInfo:
    """The scores with rewards 0 and 1, and their source."""

    starting: FiniteFloat
    reference: FiniteFloat
    kind: Annotated[str, _source("kind")] = ""
    """``published``, ``measured`` or ``modelled``."""
    where: Annotated[str, _source("where")] = ""
    hardware: Annotated[str | None, _source("hardware")] = None
    model: Annotated[str | None, _source("model")] = None
    date: Annotated[str | None, _source("date")] = None
    age_days: int | None = None
    repeats: Annotated[int | None, _source("repeats")] = None
    starting_spread: Annotated[FiniteFloat | None, _source("spread", "starting")] = None
    """Standard deviation over the repeats, in raw-score units."""
    reference_spread: Annotated[FiniteFloat | None, _source("spread", "reference")] = None
    versions: Annotated[dict[str, str], _source("versions")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """The result of one of the task's own solutions."""

    variant: str
    status: str
    raw: float | None
    reward: float | None
    spread: float | None
    repeats: int
    seconds: float
    passed: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ValidationInfo:
    """The newest validation of a task and profile among the given files."""

    source: str
    time: str
    """Modification time of the file."""
    passed: bool
    rows: tuple[ValidationRow, ...]
    note: str = ""
    problems: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task in one profile, as recorded with its runs; different ones are never averaged."""

    key: str
    """``name/profile/v1``, or ``name/cpu/v1#2`` if anchors, model or rules differ."""
    name: str
    id: str
    title: str
    profile: str
    version: int
    direction: Literal["higher", "lower"]
    aggregation: How
    unit: str
    anchors: AnchorsInfo | None
    """None if there are none or each scoring measures its own."""
    modelled: bool
    model: str | None
    """The chat model that submissions may call."""
    stand_in: bool
    flags: tuple[Flag, ...] = ()
    validation: ValidationInfo | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The change of a file between two submissions."""

    name: str
    change: FileChange
    text: str | None
    """A unified diff without its header; None if not shown, for ``reason``."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes between the submissions of two attempts."""

    against: int | None
    """Number of the earlier attempt; None for the first submission, whose files are all added."""
    files: tuple[FileDiff, ...]
    left_out: str = ""
    """A text about omitted files."""


@dataclass(frozen=True, slots=True)
class Step:
    """An action of the agent before an attempt."""

    time_s: float | None
    """End, in wall-clock seconds since the run began."""
    title: str
    """The action or tool."""
    text: str
    """Its arguments or the command."""
    output: str
    """Shortened output."""


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One scored submission of a run."""

    n: int
    time: str
    """End of scoring."""
    wall_s: float | None
    """Submission time, in seconds since the run began."""
    working_s: float | None
    """The same without waits for models, GPU or queue."""
    seconds: float
    """Duration of scoring."""
    status: Status
    raw: float | None
    reward: float | None
    """Of this attempt alone; curves and means use ``so_far``."""
    private_raw: float | None
    """The score that counts in the end, if not ``raw``."""
    so_far: float | None
    """The final reward if the run had ended here, unclipped; None before the first valid attempt."""
    message: str
    submission: str
    """Hash, or empty."""
    kept: bool
    """Whether a copy exists."""
    diff: Diff | None = None
    steps: tuple[Step, ...] = ()
    steps_left_out: int = 0
    """Number of omitted steps since the previous attempt."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One agent and model on one task with one seed."""

    key: str
    """Unique in the report."""
    path: str
    evaluation: str
    """The key of its evaluation."""
    agent: str
    model: str | None
    task: str
    """The key of its task."""
    seed: int | None
    state: RunState
    """Failed runs (internal errors) are excluded from means."""
    reason: str | None
    began: str | None
    ended: str | None
    wall_s: float | None
    working_s: float | None
    dollars: float | None
    """Cost of the agent's model, including earlier tries."""
    task_dollars: float | None
    """Cost of the task's own model."""
    tokens: int | None
    steps: int | None
    host: str | None
    hardware: str | None
    tries: int
    instances: tuple[str, ...]
    scorers: tuple[str, ...]
    sandboxes: tuple[str, ...]
    raw: float | None
    """The final score; None if no attempt was valid."""
    reward: float | None
    counted: float | None
    """The value for means: ``reward`` clipped at 0, or 0 without a valid attempt.

    None, which excludes the run from means, if it has not finished or its log lacks attempts.
    """
    incomplete_lines: int
    """Number of incomplete lines in its attempt log."""
    attempts: tuple[AttemptInfo, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Invalid attempts with the same message, ignoring numbers."""

    message: str
    """The newest message."""
    count: int
    runs: int
    """Number of affected runs."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean best reward so far over a cell's finished runs, as a step function."""

    clock: Clock
    hours: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    n: int


@dataclass(frozen=True, slots=True)
class Cell:
    """The runs of one agent and model on one task in one evaluation. Means cover finished runs."""

    evaluation: str
    agent: str
    model: str | None
    task: str
    runs: tuple[str, ...]
    """Keys of its runs."""
    reward: Estimate
    """Mean of ``RunInfo.counted``."""
    unclipped: Estimate
    """Mean of unclipped rewards over the runs that have one."""
    above_0: float | None
    """Share of runs with a reward above 0."""
    above_1: float | None
    waiting: int
    running: int
    failed: int
    no_valid: int
    """Number of finished runs without a valid attempt; they count as 0."""
    attempts: int
    invalid: int
    errors: int
    refusals: tuple[Refusal, ...]
    """Most frequent first."""
    dollars: float | None
    """Total cost of agent and task models; None if unknown for all runs."""
    wall_h: float | None
    """Total over all runs, like ``working_h``."""
    working_h: float | None
    curves: tuple[Curve, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """The expected best of ``k`` runs, which take ``hours`` in total."""

    k: int
    hours: float
    reward: Estimate
    """Mean over tasks; ``n`` is the smallest number of runs of a task."""


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """The expected best of ``k`` runs of ``run_hours`` each."""

    evaluation: str
    agent: str
    model: str | None
    profile: str
    clock: Clock
    run_hours: float
    tasks: tuple[str, ...]
    """Keys of the tasks averaged over."""
    points: tuple[BudgetPoint, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """An agent and model of one evaluation."""

    evaluation: str
    agent: str
    model: str | None
    by_task: dict[str, Estimate]
    """By key of the tasks that were run."""
    overall: Estimate
    """Mean over ``shared_tasks`` with equal weight; ``n`` counts runs."""
    dollars: float | None
    dollars_per_run: float | None
    wall_h: float | None
    """Mean per run, like ``working_h``."""
    working_h: float | None
    runs: int
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Agents and models in one profile, best first."""

    profile: str
    tasks: tuple[str, ...]
    shared_tasks: tuple[str, ...]
    """The tasks of the overall scores: those that all rows have."""
    rows: tuple[LeaderRow, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationInfo:
    """A directory or log from which runs were read."""

    key: str
    """Its name, numbered if ambiguous."""
    kind: Literal["evaluation", "server", "log"]
    """``server``: a state directory. ``log``: a plain attempt log."""
    name: str
    path: str
    created: str | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    hardware: str | None = None
    gpus: tuple[str, ...] = ()
    scan: Scan | None = None


@dataclass(frozen=True, slots=True)
class ReportData:
    """The contents of a report."""

    made: str
    evaluations: tuple[EvaluationInfo, ...]
    tasks: tuple[TaskInfo, ...]
    leaderboards: tuple[Leaderboard, ...]
    cells: tuple[Cell, ...]
    budgets: tuple[BudgetCurve, ...]
    runs: tuple[RunInfo, ...]
    problems: tuple[Problem, ...]
    version: int = VERSION

    def runs_of(self, cell: Cell) -> tuple[RunInfo, ...]:
        """Return the runs of a cell."""
        by_key = {run.key: run for run in self.runs}
        return tuple(by_key[key] for key in cell.runs)


def to_json(data: ReportData) -> dict[str, Any]:
    """Convert a report to JSON values with field names as keys."""
    values: dict[str, Any] = to_jsonable_python(data)
    return values
