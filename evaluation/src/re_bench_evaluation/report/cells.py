"""The cells of a report, runs of one agent and model at one task in one evaluation, and what is to be said of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from re_bench_evaluation.report.curves import CLOCKS, has_times, mean_curve
from re_bench_evaluation.report.data import Cell, Refusal
from re_bench_evaluation.report.estimates import mean_over_runs
from re_bench_evaluation.report.task_data import Flag
from re_bench_evaluation.report.text import sum_of_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from re_bench_evaluation.report.run_data import AttemptInfo, RunInfo
    from re_bench_evaluation.report.task_data import FlagKind, TaskInfo

FEW_RUNS = 5
"""Fewer runs than this are flagged: percentile intervals of so few are too narrow."""
_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_LONGEST_WORDS = 200
_HOUR = 3600.0
_MOST_REFUSALS = 50
_SHOWN_KINDS = 3
_SAME_FOR_ALL: Sequence[tuple[FlagKind, str, str]] = (
    ("instances", "instances", "instances of the task"),
    ("scorers", "scorers", "versions of the scorer"),
    ("hardware", "hardware", "kinds of machines"),
)
"""What should be the same in all runs of a cell: the flag, the field of a run, and what it is."""


def make_cells(runs: Sequence[RunInfo], tasks: Mapping[str, TaskInfo], *, curves: bool) -> list[Cell]:
    """Return the cells of runs, in the order in which their first runs come; with their curves if these are wanted."""
    groups: dict[tuple[str, str, str | None, str], list[RunInfo]] = defaultdict(list)
    for run in runs:
        groups[run.evaluation, run.agent, run.model, run.task].append(run)
    return [_cell(group, tasks[key[-1]], curves=curves) for key, group in groups.items()]


def _cell(runs: Sequence[RunInfo], task: TaskInfo, *, curves: bool) -> Cell:
    first, over = runs[0], [run for run in runs if run.counted is not None]
    counted = [run.counted for run in over if run.counted is not None]
    states = Counter(run.state for run in runs)
    attempts = [attempt for run in runs for attempt in run.attempts]
    means = [mean_curve(over, clock) for clock in CLOCKS] if curves else []
    return Cell(
        evaluation=first.evaluation,
        agent=first.agent,
        model=first.model,
        task=first.task,
        runs=tuple(run.key for run in runs),
        reward=mean_over_runs(counted),
        unclipped=mean_over_runs([run.reward for run in over if run.reward is not None]),
        above_0=_share(counted, 0.0),
        above_1=_share(counted, 1.0),
        waiting=states["waiting"],
        running=states["running"],
        failed=states["failed"],
        no_valid=sum(run.reward is None for run in over),
        attempts=len(attempts),
        invalid=sum(attempt.status == "invalid" for attempt in attempts),
        errors=sum(attempt.status == "error" for attempt in attempts),
        refusals=_refusals(runs),
        dollars=sum_of_known(cost for run in runs for cost in (run.dollars, run.task_dollars)),
        wall_h=_hours(run.wall_s for run in runs),
        working_h=_hours(run.working_s for run in runs),
        curves=tuple(curve for curve in means if curve),
        flags=(*task.flags, *_flags(runs, over)),
    )


def _share(values: Sequence[float], floor: float) -> float | None:
    return sum(value > floor for value in values) / len(values) if values else None


def _hours(seconds: Iterable[float | None]) -> float | None:
    total = sum_of_known(seconds)
    return None if total is None else total / _HOUR


def _refusals(runs: Sequence[RunInfo]) -> tuple[Refusal, ...]:
    """Group the invalid attempts of runs by the words of their messages."""
    groups: dict[str, list[tuple[str, AttemptInfo]]] = defaultdict(list)
    for run in runs:
        for attempt in run.attempts:
            if attempt.status == "invalid":
                words = _FIGURES.sub("0", attempt.message[:_LONGEST_WORDS])
                groups[words].append((run.key, attempt))
    refusals = [
        Refusal(
            message=max(group, key=lambda entry: entry[1].time)[1].message,
            count=len(group),
            runs=len({run for run, _attempt in group}),
            cheats=tuple(sorted({cheat for _run, attempt in group for cheat in attempt.refused_as})),
        )
        for group in groups.values()
    ]
    return tuple(sorted(refusals, key=lambda refusal: (-refusal.count, refusal.message))[:_MOST_REFUSALS])


def _flags(runs: Sequence[RunInfo], over: Sequence[RunInfo]) -> Iterator[Flag]:
    """Yield what a reader must know of a cell beyond its task."""
    if 0 < len(over) < FEW_RUNS:
        text = "one run only: no interval" if len(over) == 1 else f"{len(over)} runs only: the interval is too narrow"
        yield Flag("few_runs", text)
    yield from _counts(runs, over)
    for kind, field, what in _SAME_FOR_ALL:
        values = {value for run in runs for value in _values(getattr(run, field))}
        if len(values) > 1:
            yield Flag(kind, f"{len(values)} {what}: {_listed(values)}")
    for clock in CLOCKS:
        if over and not has_times(over, clock):
            yield Flag("clock", f"not all attempts have a {clock} time, so there is no curve over it")
    if any(attempt.final_raw is not None for run in over for attempt in run.attempts):
        yield Flag("final_scores", "what counts is measured on data that no agent was told a score of before")
    yield from dict.fromkeys(flag for run in runs for flag in run.flags)


def _counts(runs: Sequence[RunInfo], over: Sequence[RunInfo]) -> Iterator[Flag]:
    """Yield which runs are in no mean, and which count as something else than they have."""
    failed = sum(run.state == "failed" for run in runs)
    if failed:
        yield Flag("failed_runs", f"{failed} of {len(runs)} runs failed for a reason of ours, and are in no mean")
    unfinished = sum(run.state in {"waiting", "running"} for run in runs)
    if unfinished:
        yield Flag("unfinished_runs", f"{unfinished} of {len(runs)} runs are not over, and in no mean")
    damaged = sum(run.state == "ended" and run.counted is None for run in runs)
    if damaged:
        yield Flag("damaged_runs", f"{damaged} of {len(runs)} runs lack attempts in their logs, and are in no mean")
    below = sum((run.reward or 0.0) < 0 for run in over)
    if below:
        yield Flag("below_zero", f"{below} of {len(over)} runs ended below the starting score, and count as 0")


def _values(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,) if value else ()


def _listed(values: Iterable[str]) -> str:
    ordered = sorted(values)
    more = f" and {len(ordered) - _SHOWN_KINDS} more" if len(ordered) > _SHOWN_KINDS else ""
    return "; ".join(ordered[:_SHOWN_KINDS]) + more
