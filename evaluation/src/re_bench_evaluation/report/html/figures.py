"""What the figures of a report show, from its data."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from re_bench_evaluation.report.html.plots import Curve, Plot, Points, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench_evaluation.report.data import BudgetCurve, BudgetPoint, Clock, ReportData
    from re_bench_evaluation.report.data import Curve as MeanCurve
    from re_bench_evaluation.report.html.series import Series
    from re_bench_evaluation.report.run_data import RunInfo
    from re_bench_evaluation.report.task_data import TaskInfo

_HOUR_S = 3600.0
_UNITS = (("hours", 1.0, 2.0), ("minutes", 60.0, 2 / 60), ("seconds", _HOUR_S, 0.0))
"""Units of time: the name, how many are an hour, and from how many hours on an axis is in it."""
_LEVELS = (("baseline", 0.0), ("reference", 1.0))
_CLOCKS: dict[Clock, str] = {"wall": "wall-clock", "working": "working"}
_WIDE = 4
"""An axis of time is logarithmic if its last point is more than so many times the first."""


def budget_plots(data: ReportData, profile: str, clock: Clock, series: Series, key: str) -> list[Plot]:
    """Return the expected best of several runs over their time together, for whole runs, half ones and so on.

    All have the same axes, so that one sees what many short runs reach in the time of few long ones.
    """
    chosen = [curve for curve in data.budgets if (curve.profile, curve.clock) == (profile, clock) and curve.points]
    whole: dict[int, float] = defaultdict(float)
    for curve in chosen:
        whole[series.number(curve)] = max(whole[series.number(curve)], curve.run_hours)
    by_parts: dict[int, list[BudgetCurve]] = defaultdict(list)
    for curve in chosen:
        by_parts[round(whole[series.number(curve)] / curve.run_hours)].append(curve)
    points = [point for curve in chosen for point in curve.points]
    unit, scale = _unit(max((point.hours for point in points), default=0.0))
    limits = _limits(points, scale)
    return [
        Plot(
            key=f"{key}-{clock}-{parts}",
            title=f"Expected best reward over total {_CLOCKS[clock]} time, in runs of {_hours(curves)}",
            description=f"One line for each agent, in its 95 % interval; {_ends(curves)}",
            x_label=f"total {_CLOCKS[clock]} time ({unit})",
            y_label="expected best reward",
            curves=tuple(_budget_curve(curve, series, scale) for curve in curves),
            levels=_LEVELS,
            log_x=limits[1] > _WIDE * limits[0] > 0,
            limits=limits,
        )
        for parts, curves in sorted(by_parts.items())
    ]


def _hours(curves: Sequence[BudgetCurve]) -> str:
    """Return how long the runs of curves are."""
    hours = [curve.run_hours for curve in curves]
    unit, scale = _unit(max(hours))
    texts = [f"{end * scale:.3g}" for end in (min(hours), max(hours))]
    return f"{texts[0]} {unit}" if texts[0] == texts[1] else f"{texts[0]} to {texts[1]} {unit}"


def _unit(hours: float) -> tuple[str, float]:
    """Return the unit in which a time of so many hours reads well, and how many of it are an hour."""
    return next((name, scale) for name, scale, least in _UNITS if hours >= least)


def _limits(points: Sequence[BudgetPoint], scale: float) -> tuple[float, float, float, float]:
    hours = [point.hours * scale for point in points] or [0.0]
    rewards = [value for point in points for value in (point.reward.value, point.reward.high) if value is not None]
    return min(hours) * 0.9, max(hours) * 1.1, -0.08, max([1.1, *(value * 1.05 for value in rewards)])


def progress_plot(data: ReportData, task: TaskInfo, clock: Clock, series: Series, key: str) -> Plot | None:
    """Return the best reward so far of a task's runs over time, or None where no time is known."""
    lines = [step for run in data.runs if run.task == task.key for step in _step(run, clock, series)]
    cells = [cell for cell in data.cells if cell.task == task.key]
    means = [(series.number(cell), curve) for cell in cells for curve in cell.curves if curve.clock == clock]
    unit, scale = _unit(
        max(x for line in [*(step.x for step in lines), *(curve.hours for _n, curve in means), (0.0,)] for x in line)
    )
    steps = tuple(replace(step, x=tuple(x * scale for x in step.x)) for step in lines)
    curves = tuple(_mean_curve(number, curve, scale) for number, curve in means)
    if not steps and not curves:
        return None
    return Plot(
        key=f"{key}-{clock}",
        title=f"Best reward so far over {_CLOCKS[clock]} time, {task.name}",
        description=f"{len(steps)} runs as thin lines, means of {len(curves)} agents as thick ones in 95 % bands.",
        x_label=f"{_CLOCKS[clock]} time ({unit})",
        y_label="best reward so far",
        curves=curves,
        steps=steps,
        levels=_LEVELS,
    )


def cost_plot(data: ReportData, series: Series) -> Plot | None:
    """Return reward over dollars, a point for each run, or None where no cost is known."""
    known = [run for run in data.runs if run.dollars is not None and run.counted is not None]
    ordered = sorted(known, key=series.number)
    if not known:
        return None
    return Plot(
        key="reward-over-cost",
        title="Reward over cost, a point for each run",
        description=f"{len(known)} runs whose cost is known.",
        x_label="dollars of a run",
        y_label="reward",
        points=tuple(_points(number, list(runs)) for number, runs in groupby(ordered, key=series.number)),
        levels=_LEVELS,
    )


def _points(number: int, runs: Sequence[RunInfo]) -> Points:
    costs = ((run.dollars or 0) + (run.task_dollars or 0) for run in runs)
    return Points(number, tuple(costs), tuple(run.counted or 0 for run in runs))


def _ends(curves: Sequence[BudgetCurve]) -> str:
    """Say how high lines end."""
    lasts = [point.reward.value for curve in curves for point in curve.points[-1:] if point.reward.value is not None]
    return f"they end between {min(lasts):.2f} and {max(lasts):.2f}." if lasts else "none has a figure."


def _budget_curve(curve: BudgetCurve, series: Series, scale: float) -> Curve:
    points = [(point.hours * scale, point.reward) for point in curve.points]
    known = [(hours, reward, reward.value) for hours, reward in points if reward.value is not None]
    low = tuple(value if reward.low is None else reward.low for _hours, reward, value in known)
    high = tuple(value if reward.high is None else reward.high for _hours, reward, value in known)
    hours, values = tuple(entry[0] for entry in known), tuple(entry[2] for entry in known)
    return Curve(series.number(curve), hours, values, low, high)


def _mean_curve(number: int, curve: MeanCurve, scale: float) -> Curve:
    low = tuple(mean if low is None else low for low, mean in zip(curve.low, curve.mean, strict=True))
    high = tuple(mean if high is None else high for high, mean in zip(curve.high, curve.mean, strict=True))
    return Curve(number, tuple(hours * scale for hours in curve.hours), tuple(curve.mean), low, high, steps=True)


def _step(run: RunInfo, clock: Clock, series: Series) -> Iterator[Step]:
    """Yield the line of a run, where its clock is known: from 0 at its beginning, up at each attempt that is better."""
    end = run.wall_s if clock == "wall" else run.working_s
    jumps = []
    for attempt in run.attempts:
        at = attempt.wall_s if clock == "wall" else attempt.working_s
        if at is not None and attempt.so_far is not None:
            jumps.append((at / _HOUR_S, max(attempt.so_far, 0.0)))
    if not jumps:
        return
    line = [(0.0, 0.0), *_changes(jumps)]
    line.append((max(line[-1][0], jumps[-1][0], (end or 0) / _HOUR_S), line[-1][1]))
    label = f"{series.label(run)}, seed {run.seed}: {'no reward' if run.reward is None else f'{run.reward:z.2f}'}"
    yield Step(series.number(run), tuple(x for x, _y in line), tuple(y for _x, y in line), label)


def _changes(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    last = 0.0
    for x, y in points:
        if y != last:
            yield x, y
        last = y
