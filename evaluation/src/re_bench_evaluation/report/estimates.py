"""Compute the statistics of a report: means, confidence intervals, curves over time and the expected best of k runs.

A cell is the group of all runs of one agent and model on one task in one evaluation. A run's score at time t is the
reward that the run would have had if it had ended at t. Scores are clipped at 0, the reward of the baseline, with which
the workspace starts. After the end of a run its score stays constant.

Intervals are 95 % confidence intervals from the percentile bootstrap (B. Efron, "Bootstrap methods: another look at the
jackknife", Annals of Statistics 7, 1979), which resamples runs within each task. They do not depend on the order of the
runs, because values are sorted first and the seed is fixed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from re_bench.normalise import as_finite
from re_bench_evaluation.report.data import BudgetCurve, BudgetPoint, Cell, Curve, Estimate, Flag, Refusal
from re_bench_evaluation.report.text import sum_of_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from re_bench_evaluation.report.data import AttemptInfo, Clock, EvaluationInfo, FlagKind, RunInfo, TaskInfo

CLOCKS: tuple[Clock, ...] = ("wall", "working")
FEW_RUNS = 5
"""Cells with fewer runs are flagged, because percentile intervals of so few runs are too narrow."""
_HOUR = 3600.0
_MIN_HOURS = 1e-6
"""Smaller hours in a plan are ignored; plans may be untrusted."""

_SEED = 21
_PERCENTILES = (2.5, 97.5)
_DRAWN = 200_000
"""Number of values drawn per interval; ``_RESAMPLES`` takes precedence."""
_RESAMPLES = (500, 2000)
"""Minimum and maximum number of bootstrap samples per interval."""
_MIN_RUNS = 2
"""Minimum number of runs for an interval."""

_MAX_POINTS = 150
_MAX_RUNS = 100
"""Largest k of the expected best of k runs."""
_SHARES = (1, 2, 4, 8)
"""Divisors of the planned run length, for shorter runs: a half, a quarter and an eighth."""

_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_COMPARED_LENGTH = 200
_MAX_REFUSALS = 50
_SHOWN_KINDS = 3
_SAME_FOR_ALL: Sequence[tuple[FlagKind, str, str]] = (
    ("instances", "instances", "task instances"),
    ("scorers", "scorers", "scorer versions"),
    ("hardware", "hardware", "kinds of machine"),
)
"""Properties that should be equal for all runs of a cell: kind of flag, field of ``RunInfo``, name in the text."""


def make_cells(runs: Sequence[RunInfo], tasks: Mapping[str, TaskInfo], *, curves: bool) -> list[Cell]:
    """Group runs into cells, in the order in which the cells' first runs appear."""
    groups: dict[tuple[str, str, str | None, str], list[RunInfo]] = defaultdict(list)
    for run in runs:
        groups[run.evaluation, run.agent, run.model, run.task].append(run)
    return [_cell(group, tasks[key[-1]], curves=curves) for key, group in groups.items()]


def _cell(runs: Sequence[RunInfo], task: TaskInfo, *, curves: bool) -> Cell:
    first, finished = runs[0], [run for run in runs if run.counted is not None]
    counted = [run.counted for run in finished if run.counted is not None]
    states = Counter(run.state for run in runs)
    attempts = [attempt for run in runs for attempt in run.attempts]
    means = [mean_curve(finished, clock) for clock in CLOCKS] if curves else []
    return Cell(
        evaluation=first.evaluation,
        agent=first.agent,
        model=first.model,
        task=first.task,
        runs=tuple(run.key for run in runs),
        reward=mean_over_tasks([counted]),
        unclipped=mean_over_tasks([[run.reward for run in finished if run.reward is not None]]),
        above_0=_share(counted, 0.0),
        above_1=_share(counted, 1.0),
        waiting=states["waiting"],
        running=states["running"],
        failed=states["failed"],
        no_valid=sum(run.reward is None for run in finished),
        attempts=len(attempts),
        invalid=sum(attempt.status == "invalid" for attempt in attempts),
        errors=sum(attempt.status == "error" for attempt in attempts),
        refusals=_refusals(runs),
        dollars=sum_of_known(cost for run in runs for cost in (run.dollars, run.task_dollars)),
        wall_h=hours_of(sum_of_known(run.wall_s for run in runs)),
        working_h=hours_of(sum_of_known(run.working_s for run in runs)),
        curves=tuple(curve for curve in means if curve),
        flags=(*task.flags, *_flags(runs, finished)),
    )


def _share(values: Sequence[float], floor: float) -> float | None:
    return sum(value > floor for value in values) / len(values) if values else None


def hours_of(seconds: float | None) -> float | None:
    """Convert seconds to hours; None stays None."""
    return None if seconds is None else seconds / _HOUR


def _refusals(runs: Sequence[RunInfo]) -> tuple[Refusal, ...]:
    """Group invalid attempts by message; messages that differ only in numbers count as equal."""
    groups: dict[str, list[tuple[str, AttemptInfo]]] = defaultdict(list)
    for run in runs:
        for attempt in run.attempts:
            if attempt.status == "invalid":
                groups[_FIGURES.sub("0", attempt.message[:_COMPARED_LENGTH])].append((run.key, attempt))
    refusals = [
        Refusal(
            message=max(group, key=lambda entry: entry[1].time)[1].message,
            count=len(group),
            runs=len({run for run, _attempt in group}),
        )
        for group in groups.values()
    ]
    return tuple(sorted(refusals, key=lambda refusal: (-refusal.count, refusal.message))[:_MAX_REFUSALS])


def _flags(runs: Sequence[RunInfo], finished: Sequence[RunInfo]) -> Iterator[Flag]:
    """Yield the flags of a cell that depend on its runs."""
    if 0 < len(finished) < FEW_RUNS:
        text = "only 1 run: no interval" if len(finished) == 1 else f"only {len(finished)} runs: interval too narrow"
        yield Flag("few_runs", text)
    counts: Sequence[tuple[FlagKind, int, str]] = (
        ("failed_runs", sum(run.state == "failed" for run in runs),
         "failed for technical reasons (server, machine, or the agent never started); the mean leaves them out"),
        ("unfinished_runs", sum(run.state in {"waiting", "running"} for run in runs),
         "have not finished; the mean leaves them out"),
        ("damaged_runs", sum(run.state == "ended" and run.counted is None for run in runs),
         "have logs with missing attempts; the mean leaves them out"),
        ("below_zero", sum((run.reward or 0.0) < 0 for run in finished), "ended below the starting score; count as 0"),
    )  # fmt: skip
    yield from (Flag(kind, f"{count} of {len(runs)} runs {text}") for kind, count, text in counts if count)
    for kind, field, what in _SAME_FOR_ALL:
        values = {value for run in runs for value in _values(getattr(run, field))}
        if len(values) > 1:
            yield Flag(kind, f"{len(values)} {what}: {_listed(values)}")
    for clock in CLOCKS:
        if finished and not has_times(finished, clock):
            yield Flag("clock", f"no curve over {clock} time, which is unknown for some attempts")
    if any(attempt.private_raw is not None for run in finished for attempt in run.attempts):
        yield Flag("final_scores", "final scores use held-out data that earlier scores did not use")
    yield from dict.fromkeys(flag for run in runs for flag in run.flags)


def _values(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,) if value else ()


def _listed(values: Iterable[str]) -> str:
    ordered = sorted(values)
    more = f" and {len(ordered) - _SHOWN_KINDS} more" if len(ordered) > _SHOWN_KINDS else ""
    return "; ".join(ordered[:_SHOWN_KINDS]) + more


def attempt_time(attempt: AttemptInfo, clock: Clock) -> float | None:
    """Return the submission time of an attempt in seconds since the run began; None if unknown."""
    return attempt.wall_s if clock == "wall" else attempt.working_s


def run_length(run: RunInfo, clock: Clock) -> float:
    """Return the duration of a run in seconds, at least the submission time of its last attempt."""
    known = [run.wall_s if clock == "wall" else run.working_s, *(attempt_time(one, clock) for one in run.attempts)]
    return max((seconds for seconds in known if seconds is not None), default=0.0)


def has_times(runs: Sequence[RunInfo], clock: Clock) -> bool:
    """Return whether the submission times of all attempts are known."""
    return all(attempt_time(attempt, clock) is not None for run in runs for attempt in run.attempts)


def scores_at(run: RunInfo, seconds: NDArray[np.float64], clock: Clock) -> NDArray[np.float64]:
    """Return a run's score at each of the times ``seconds`` since its start."""
    submitted_at = np.array([attempt_time(attempt, clock) for attempt in run.attempts], dtype=np.float64)
    scores = np.array([0.0, *(max(0.0, attempt.so_far or 0.0) for attempt in run.attempts)])
    return scores[np.searchsorted(np.maximum.accumulate(submitted_at), seconds, side="right")]


def mean_curve(runs: Sequence[RunInfo], clock: Clock) -> Curve | None:
    """Return the mean score of runs over time with its interval; None without runs or if a time is unknown.

    The curve has a point at each submission time, or ``_MAX_POINTS`` evenly spaced points if there are more.
    """
    if not runs or not has_times(runs, clock):
        return None
    end = max(run_length(run, clock) for run in runs)
    times = {attempt_time(attempt, clock) or 0.0 for run in runs for attempt in run.attempts}
    seconds = np.array(sorted({0.0, end} | times))
    if len(seconds) > _MAX_POINTS:
        seconds = np.linspace(0.0, end, _MAX_POINTS)
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
    """Return the curves of the expected best of k runs for each evaluation, agent, model and profile."""
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
    """Return the curves of the expected best of k runs, for one agent and model in one profile.

    There is one curve per run length and clock. Tasks without a finished run are excluded, and so are tasks whose last
    score counts, since choosing their best run requires seeing the scores. Flags name the excluded tasks.

    Args:
        cells: the cells of the agent and model.
        runs: all runs, by key.
        tasks: all tasks, by key.
        hours: the planned length of a run; None uses the length of the longest run.
    """
    flags = []
    finished = {cell.task: [runs[key] for key in cell.runs if runs[key].counted is not None] for cell in cells}
    hidden = [task for task in finished if tasks[task].aggregation == "last"]
    if hidden:
        flags.append(Flag("tasks", f"excluded: {', '.join(hidden)} (the last score counts, not the best)"))
    missing = [task for task, ended in finished.items() if not ended and task not in hidden]
    if missing:
        flags.append(Flag("tasks", f"excluded: {', '.join(missing)} (no finished run)"))
    used = {task: ended for task, ended in finished.items() if ended and task not in hidden}
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
        best = best_of_each_k([task[:, position] for task in scores], _MAX_RUNS)
        points = (BudgetPoint(k, k * run_hours, estimate) for k, estimate in enumerate(best, 1))
        yield BudgetCurve(
            evaluation=cell.evaluation, agent=cell.agent, model=cell.model, profile=profile, clock=clock,
            run_hours=run_hours, tasks=tuple(sorted(used)), points=tuple(points),
        )  # fmt: skip


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value), 6) for value in values)


def _limits(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else round(float(value), 6) for value in values)


def planned_hours(evaluation: EvaluationInfo) -> float | None:
    """Return the working hours per run according to the plan; None if unknown."""
    budget = evaluation.plan.get("budget")
    hours = as_finite(budget.get("hours")) if isinstance(budget, dict) else None
    return hours if hours is not None and hours >= _MIN_HOURS else None


def mean_over_tasks(tasks: Sequence[Sequence[float]]) -> Estimate:
    """Average the rewards over the runs of each task, then over tasks with equal weights.

    The result has no value if a task has no runs, and no interval if a task has fewer than two runs. Its ``n`` is the
    number of runs of all tasks.

    Args:
        tasks: for each task, the rewards of its runs.
    """
    n = sum(map(len, tasks))
    if not tasks or not all(map(len, tasks)):
        return Estimate(None, None, None, n)
    best = best_of_each_k(tasks, 1)[0]
    return replace(best, n=n)


def best_of_each_k(tasks: Sequence[Sequence[float] | NDArray[np.float64]], most: int | None = None) -> list[Estimate]:
    """Return the expected best reward of k runs, averaged over tasks, for k from 1 to ``most``.

    For each task, the expected best is the mean of the maximum over all subsets of k of its n runs. With values in
    ascending order, this is the sum of ``values[i - 1] * C(i - 1, k - 1) / C(n, k)`` over i from k to n. It applies the
    unbiased estimator of pass@k (M. Chen et al., arXiv 2107.03374, section 2.1) to rewards.

    Args:
        tasks: for each task, the rewards of its runs.
        most: the largest k; at most, and by default, the smallest number of runs that any task has.

    Returns:
        An estimate for each k, whose ``n`` is the smallest number of runs that any task has. There are no intervals
        if that number is below two.
    """
    n = min(map(len, tasks), default=0)
    most = n if most is None else min(most, n)
    if not most:
        return []
    ordered = sorted((_sorted(values) for values in tasks), key=lambda values: values.tolist())
    weights = [_weights(len(values), most) for values in ordered]
    exact = np.mean([values @ weight for values, weight in zip(ordered, weights, strict=True)], axis=0)
    if n < _MIN_RUNS:
        return [Estimate(float(value), None, None, n) for value in exact]
    generator, count = np.random.default_rng(_SEED), _resamples(max(map(len, ordered)))
    drawn = [
        np.sort(values[generator.integers(len(values), size=(count, len(values)))], axis=1) @ weight
        for values, weight in zip(ordered, weights, strict=True)
    ]
    low, high = np.percentile(np.mean(drawn, axis=0), _PERCENTILES, axis=0)
    # Keep the value inside its interval: a limit may be on the wrong side because of rounding, or if k is close to n.
    limits = zip(exact, np.minimum(low, exact), np.maximum(high, exact), strict=True)
    return [Estimate(float(value), float(lower), float(upper), n) for value, lower, upper in limits]


def mean_of_rows(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of each column, and the lower and upper limits of its interval.

    Rows are runs, and the bootstrap resamples whole rows. With a single row the limits are NaN.
    """
    rows = rows[np.lexsort(rows.T[::-1])]
    mean, n = rows.mean(axis=0), len(rows)
    if n < _MIN_RUNS:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    # Draw how often each run occurs in each resample, so that one matrix product gives the means of all resamples.
    times = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), size=_resamples(rows.size))
    low, high = np.percentile(times @ rows / n, _PERCENTILES, axis=0)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def _sorted(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sort(np.asarray(values, dtype=np.float64))


def _resamples(size: int) -> int:
    fewest, most = _RESAMPLES
    return max(fewest, min(most, _DRAWN // size))


@cache
def _weights(n: int, most: int) -> NDArray[np.float64]:
    """Return the weights of n values in the expected best of k.

    Rows are the values in ascending order; columns are k from 1 to ``most``.
    """
    k = np.arange(1, most + 1)
    weights = np.zeros((n, most))
    weights[n - 1] = k / n  # C(n - 1, k - 1) / C(n, k)
    for i in range(n - 1, 0, -1):  # C(i - 1, k - 1) = C(i, k - 1) * (i - k + 1) / i
        weights[i - 1] = weights[i] * np.maximum(i - k + 1, 0) / i
    return weights
