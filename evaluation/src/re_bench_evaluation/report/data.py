"""The data of a report: the tables in a terminal, ``--json`` and the page are made from it alone.

``docs/reports.md`` says how each figure is computed. Durations are in seconds where a name ends in ``_s`` and in hours
where it ends in ``_h``; times are ISO 8601 in UTC; what is not known is None. Texts that agents or submissions wrote
are cut to a bound and otherwise unchanged: whoever shows them has to escape them.
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
"""Of the JSON that :func:`to_json` gives."""
Clock = Literal["wall", "working"]
FileChange = Literal["added", "removed", "changed"]
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


def _source(*path: str) -> Any:
    """Return where the anchors of a task's record have a field of this name."""
    return Field(validation_alias=AliasPath("source", *path))


@dataclass(frozen=True, slots=True)
class AnchorsInfo:
    """The two scores that make the scale from 0 to 1, and where they come from."""

    starting: FiniteFloat
    reference: FiniteFloat
    kind: Annotated[str, _source("kind")] = ""
    """``published``, ``measured`` or ``modelled``."""
    where: Annotated[str, _source("where")] = ""
    hardware: Annotated[str | None, _source("hardware")] = None
    model: Annotated[str | None, _source("model")] = None
    date: Annotated[str | None, _source("date")] = None
    age_days: int | None = None
    """At the time of the report."""
    repeats: Annotated[int | None, _source("repeats")] = None
    starting_spread: Annotated[FiniteFloat | None, _source("spread", "starting")] = None
    """The standard deviation over the repeats, in the raw score's unit; so is ``reference_spread``."""
    reference_spread: Annotated[FiniteFloat | None, _source("spread", "reference")] = None
    versions: Annotated[dict[str, str], _source("versions")] = field(default_factory=dict)


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
    passed: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class ValidationInfo:
    """The newest validation of a task in a profile among the files that were given."""

    source: str
    time: str
    """When its file was last written."""
    passed: bool
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


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How a file of a submission differs from the one before."""

    name: str
    change: FileChange
    text: str | None
    """A unified diff without its two lines of names; None for what is not shown, and then ``reason`` says why."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """How a kept submission differs from the one of an earlier attempt."""

    against: int | None
    """The attempt's number; None for the first submission that was kept, all of whose files count as added."""
    files: tuple[FileDiff, ...]
    left_out: str = ""
    """What of it is not there, in words."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the agent did before an attempt."""

    time_s: float | None
    """When it ended: wall-clock seconds since the run began."""
    title: str
    """The action or tool."""
    text: str
    """Its arguments, or the command."""
    output: str
    """The beginning and the end of what it was told."""


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """One scored submission of a run."""

    n: int
    time: str
    """When it was scored."""
    wall_s: float | None
    """When it was handed in: seconds since the run began."""
    working_s: float | None
    """The same without waiting for other people's machines."""
    seconds: float
    """How long its scoring took."""
    status: Status
    raw: float | None
    reward: float | None
    private_raw: float | None
    """What counts for the final score, where that is not ``raw``."""
    so_far: float | None
    """The run's final reward if it had ended here; None before the first valid attempt. Not clipped."""
    message: str
    submission: str
    """The hash of what was scored, or empty."""
    kept: bool
    """Whether a copy of it is there."""
    diff: Diff | None = None
    steps: tuple[Step, ...] = ()
    steps_left_out: int = 0
    """How many more steps there were since the attempt before."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One agent and model at one task with one seed."""

    key: str
    """Names it in this report."""
    path: str
    evaluation: str
    """The key of its evaluation."""
    agent: str
    model: str | None
    task: str
    """The key of its task."""
    seed: int | None
    state: RunState
    """A run that failed, for an internal reason, counts in no mean."""
    reason: str | None
    began: str | None
    ended: str | None
    wall_s: float | None
    working_s: float | None
    dollars: float | None
    """What the agent's model has cost, in earlier tries too."""
    task_dollars: float | None
    """What the task's own model has cost."""
    tokens: int | None
    steps: int | None
    host: str | None
    hardware: str | None
    tries: int
    instances: tuple[str, ...]
    """Of the task, as its attempts name them."""
    scorers: tuple[str, ...]
    """Versions of the scorer, as its attempts name them."""
    sandboxes: tuple[str, ...]
    raw: float | None
    """The final score; None if no attempt was valid."""
    reward: float | None
    counted: float | None
    """What counts in means: ``reward``, but 0 where it is negative or there is none.

    None, so that the run is in no mean, while it is not over, or if its log lacks attempts that its record counts.
    """
    torn: int
    """Lines of its attempt log that are not whole."""
    attempts: tuple[AttemptInfo, ...]
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Invalid attempts that were refused in the same words; figures in a message count as the same words."""

    message: str
    """The newest of these messages."""
    count: int
    runs: int
    """How many runs had one."""


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
class EvaluationInfo:
    """One directory or log that runs were read from."""

    key: str
    """Its name, with a number after it where several have the same."""
    kind: Literal["evaluation", "server", "log"]
    """An evaluation, the state directory of a server, or a plain attempt log."""
    name: str
    path: str
    created: str | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    hardware: str | None = None
    gpus: tuple[str, ...] = ()
    scan: Scan | None = None
    """The last ``re-bench scan`` of it."""


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

    def runs_of(self, cell: Cell) -> tuple[RunInfo, ...]:
        """Return the runs of a cell, in its order."""
        by_key = {run.key: run for run in self.runs}
        return tuple(by_key[key] for key in cell.runs)


def to_json(data: ReportData) -> dict[str, Any]:
    """Return a report as JSON values, with the names of the fields as keys."""
    values: dict[str, Any] = to_jsonable_python(data)
    return values
