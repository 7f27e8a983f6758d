"""The runs and attempts of a report, as plain data; ``data`` says in which units and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from re_bench.records import RunState
    from re_bench.runs.attempts import Status
    from re_bench_evaluation.report.task_data import Flag

FileChange = Literal["added", "removed", "changed"]


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
    final_raw: float | None
    """What counts for the final score, where that is not ``raw``."""
    so_far: float | None
    """The run's final reward if it had ended here; None before the first valid attempt. Not clipped."""
    message: str
    submission: str
    """The hash of what was scored, or empty."""
    kept: bool
    """Whether a copy of it is there."""
    refused_as: tuple[str, ...] = ()
    """Of an invalid attempt: the task's checked-in cheats that are refused in the same words."""
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
    """A run that failed, for a reason of ours, counts in no mean."""
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
