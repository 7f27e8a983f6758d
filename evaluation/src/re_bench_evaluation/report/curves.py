"""Scores over time: the best reward so far, and the expected best of several runs that share a budget of hours.

A run's score at a time is its final reward if it had ended then, and 0 where that is negative or nothing valid was
handed in yet: the workspace begins with the baseline. A run that ended before keeps its score.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from re_bench_evaluation.report.data import BudgetCurve, BudgetPoint, Curve
from re_bench_evaluation.report.estimates import best_of_each_k, mean_of_rows
from re_bench_evaluation.report.leaderboard import planned_hours
from re_bench_evaluation.report.task_data import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from re_bench_evaluation.report.data import Cell, Clock, EvaluationInfo
    from re_bench_evaluation.report.run_data import AttemptInfo, RunInfo
    from re_bench_evaluation.report.task_data import TaskInfo

CLOCKS: tuple[Clock, ...] = ("wall", "working")
_MOST_POINTS = 150
_MOST_RUNS = 100
"""The largest k of a best of k."""
_SHARES = (1, 2, 4, 8)
"""Runs of the whole length, of a half, ..."""
_HOUR = 3600.0


def attempt_time(attempt: AttemptInfo, clock: Clock) -> float | None:
    """Return when an attempt was handed in by a clock, in seconds since the run began."""
    return attempt.wall_s if clock == "wall" else attempt.working_s


def run_length(run: RunInfo, clock: Clock) -> float:
    """Return how long a run took by a clock, in seconds; at least until its last attempt."""
    known = [run.wall_s if clock == "wall" else run.working_s, *(attempt_time(one, clock) for one in run.attempts)]
    return max((seconds for seconds in known if seconds is not None), default=0.0)


def has_times(runs: Sequence[RunInfo], clock: Clock) -> bool:
    """Tell whether it is known of all attempts when they were handed in."""
    return all(attempt_time(attempt, clock) is not None for run in runs for attempt in run.attempts)


def scores_at(run: RunInfo, seconds: NDArray[np.float64], clock: Clock) -> NDArray[np.float64]:
    """Return a run's score at each of some times."""
    handed_in = np.array([attempt_time(attempt, clock) for attempt in run.attempts], dtype=np.float64)
    scores = np.array([0.0, *(max(0.0, attempt.so_far or 0.0) for attempt in run.attempts)])
    return scores[np.searchsorted(np.maximum.accumulate(handed_in), seconds, side="right")]


def mean_curve(runs: Sequence[RunInfo], clock: Clock) -> Curve | None:
    """Return the mean score of runs over time with its interval; None without runs or times.

    It has a point wherever the score of a run changes; of many points, some at equal distances are taken.
    """
    if not runs or not has_times(runs, clock):
        return None
    end = max(run_length(run, clock) for run in runs)
    times = {attempt_time(attempt, clock) or 0.0 for run in runs for attempt in run.attempts}
    seconds = np.array(sorted({0.0, end} | times))
    if len(seconds) > _MOST_POINTS:
        seconds = np.linspace(0.0, end, _MOST_POINTS)
    mean, low, high = mean_of_rows(np.array([scores_at(run, seconds, clock) for run in runs]))
    return Curve(
        clock=clock, hours=_rounded(seconds / _HOUR), mean=_rounded(mean), low=_limits(low), high=_limits(high),
        n=len(runs),
    )  # fmt: skip


def make_budgets(
    cells: Sequence[Cell],
    runs: Mapping[str, RunInfo],
    tasks: Mapping[str, TaskInfo],
    evaluations: Mapping[str, EvaluationInfo],
) -> list[BudgetCurve]:
    """Return the expected best of k runs of every agent and model of an evaluation in each profile, all by key."""
    groups: dict[tuple[str, str, str | None, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.evaluation, cell.agent, cell.model, tasks[cell.task].profile].append(cell)
    return [
        curve
        for key, group in groups.items()
        for curve in budget_curves(group, runs, tasks, planned_hours(evaluations[key[0]]))
    ]


def budget_curves(
    cells: Sequence[Cell], runs: Mapping[str, RunInfo], tasks: Mapping[str, TaskInfo], hours: float | None
) -> list[BudgetCurve]:
    """Return the expected best of k runs over the hours of all, for one agent and model in one profile.

    Tasks whose last score counts have no best run that anybody could choose without having seen the scores, and are
    left out, as tasks without a run that is over are; flags say so.

    Args:
        cells: of one evaluation, agent, model and profile.
        runs: by key.
        tasks: by key.
        hours: of a run, as planned; None for the length of the longest run.
    """
    flags = []
    over = {cell.task: [runs[key] for key in cell.runs if runs[key].counted is not None] for cell in cells}
    hidden = [task for task in over if tasks[task].aggregation == "last"]
    if hidden:
        flags.append(Flag("tasks", f"without {', '.join(hidden)}, whose last score counts and not the best"))
    missing = [task for task, ended in over.items() if not ended and task not in hidden]
    if missing:
        flags.append(Flag("tasks", f"without {', '.join(missing)}, of which no run is over"))
    used = {task: ended for task, ended in over.items() if ended and task not in hidden}
    curves: list[BudgetCurve] = []
    for clock in CLOCKS if used else ():
        if all(has_times(ended, clock) for ended in used.values()):
            curves += _curves_of_clock(cells[0], used, tasks[cells[0].task].profile, clock, hours)
    return [replace(curve, flags=tuple(flags)) for curve in curves]


def _curves_of_clock(
    cell: Cell, used: Mapping[str, Sequence[RunInfo]], profile: str, clock: Clock, hours: float | None
) -> Iterator[BudgetCurve]:
    longest = max(run_length(run, clock) for ended in used.values() for run in ended) / _HOUR
    whole = longest if hours is None else min(hours, longest)
    lengths = [whole / share for share in _SHARES] if whole > 0 else []
    at = np.array(lengths) * _HOUR
    scores = [np.array([scores_at(run, at, clock) for run in ended]) for ended in used.values()]
    for position, run_hours in enumerate(lengths):
        best = best_of_each_k([task[:, position] for task in scores], _MOST_RUNS)
        points = (BudgetPoint(k, k * run_hours, estimate) for k, estimate in enumerate(best, 1))
        yield BudgetCurve(
            evaluation=cell.evaluation, agent=cell.agent, model=cell.model, profile=profile, clock=clock,
            run_hours=run_hours, tasks=tuple(sorted(used)), points=tuple(points),
        )  # fmt: skip


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)


def _limits(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else round(float(value), 6) for value in values)
