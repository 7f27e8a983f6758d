"""Draw the figures of a report as SVG images in data URLs. Figures contain no untrusted text."""

from __future__ import annotations

import base64
import io
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from re_bench_evaluation.report.estimates import attempt_time, run_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from re_bench_evaluation.report.data import BudgetCurve, Cell, Clock, LeaderRow, ReportData, RunInfo

    Number = Callable[[BudgetCurve | Cell | LeaderRow | RunInfo], int]
    """A function that returns the number of an entry's agent and model, which determines the style of its line."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5538f", "#8250df", "#a07800", "#6e7781")
"""Colours that differ in lightness and are readable on white and dark backgrounds."""
_MARKERS = "osD^vPX"
_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("solid", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
_CLOCKS: dict[Clock, str] = {"wall": "wall-clock", "working": "working"}
_HOUR_S = 3600.0
_MAX_RUNS = 40
"""Maximum number of runs drawn in a figure; more runs are sampled evenly."""
_FEW = 12
"""Lines with more points have markers at some of their points only."""
_WIDE = 4
"""Minimum ratio of the last to the first time for a logarithmic time axis."""
_PATH = re.compile(r' d="[^"]*"')
_DECIMALS = re.compile(r"(\.\d)\d+")
"""Matches decimals, to keep only the first one in paths, which halves the size of a figure."""
_STYLE = {
    "font.size": 9.5,
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "axes.edgecolor": "#5b6470",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e1e4e9",
    "grid.linewidth": 0.7,
    "axes.titlesize": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "re-bench",
}


def budget_figure(data: ReportData, profile: str, clock: Clock, number: Number) -> str | None:
    """Draw the expected best reward of several runs over their total time; return None without data.

    There is a panel for each run length. All panels have the same axes, so that many short runs can be compared with
    few long runs.
    """
    chosen = [curve for curve in data.budgets if (curve.profile, curve.clock) == (profile, clock) and curve.points]
    whole: dict[int, float] = defaultdict(float)
    for curve in chosen:
        whole[number(curve)] = max(whole[number(curve)], curve.run_hours)
    parts: dict[int, list[BudgetCurve]] = defaultdict(list)
    for curve in chosen:
        parts[round(whole[number(curve)] / curve.run_hours)].append(curve)
    if not parts:
        return None
    times = [point.hours for curve in chosen for point in curve.points]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, 3.3 * ((len(parts) + 1) // 2)), layout="constrained")
        columns = min(2, len(parts))
        grid = figure.subplots(-(-len(parts) // columns), columns, sharex=True, sharey=True, squeeze=False)
        for axes, (_part, curves) in zip(grid.flat, sorted(parts.items()), strict=False):
            shortest, longest = (f"{end(curve.run_hours for curve in curves):.3g}" for end in (min, max))
            axes.set_title(f"runs of {shortest}{'' if shortest == longest else f' to {longest}'} hours")
            for curve in curves:
                _draw_budget(axes, curve, number(curve))
            _draw_levels(axes)
        for axes in grid.flat[len(parts) :]:
            axes.set_axis_off()
        first = grid[0, 0]
        if max(times) > _WIDE * min(times) > 0:
            first.set_xscale("log", base=2)
            first.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            first.xaxis.set_minor_formatter(NullFormatter())
        figure.supylabel("expected best reward", fontsize=9.5)
        figure.supxlabel(f"total {_CLOCKS[clock]} time of all runs (hours)", fontsize=9.5)
        return _address(figure)


def progress_figure(data: ReportData, task: str, clock: Clock, number: Number) -> str | None:
    """Draw the best reward so far of a task's runs over time, with the agents' means; return None without times."""
    lines = [(number(run), *line) for run in data.runs if run.task == task and (line := run_line(run, clock))]
    cells = [cell for cell in data.cells if cell.task == task]
    means = [(number(cell), curve) for cell in cells for curve in cell.curves if curve.clock == clock]
    if not lines and not means:
        return None
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(f"{_CLOCKS[clock]} time (hours)", "best reward so far")
        for series, x, y in lines[:: -(-len(lines) // _MAX_RUNS) or 1]:
            axes.step(x, y, where="post", lw=0.8, alpha=0.35, color=_colour(series))
        for series, curve in means:
            low, high = (_or(limit, curve.mean) for limit in (curve.low, curve.high))
            _draw_line(axes, series, curve.hours, (curve.mean, low, high), steps=True)
        _draw_levels(axes)
        return _address(figure)


def cost_figure(data: ReportData, number: Number) -> str | None:
    """Draw reward over cost with one point per run; return None if no cost is known."""
    known = [run for run in data.runs if run.dollars is not None and run.counted is not None]
    if not known:
        return None
    with mpl.rc_context(_STYLE):
        figure, axes = _figure("dollars per run", "reward")
        for series in sorted({number(run) for run in known}):
            runs = [run for run in known if number(run) == series]
            costs = [(run.dollars or 0) + (run.task_dollars or 0) for run in runs]
            rewards = [run.counted or 0.0 for run in runs]
            axes.plot(costs, rewards, _marker(series), markersize=5, color=_colour(series), alpha=0.7)
        _draw_levels(axes)
        return _address(figure)


def run_line(run: RunInfo, clock: Clock) -> tuple[list[float], list[float]] | None:
    """Return the line of a run as hours and rewards; None if no valid attempt has a known time.

    The line starts at reward 0, has a step at each change, and ends when the run ended.
    """
    x, y = [0.0], [0.0]
    timed = [(attempt_time(attempt, clock), attempt.so_far) for attempt in run.attempts]
    known = [(time, max(reward, 0.0)) for time, reward in timed if time is not None and reward is not None]
    for time, reward in known:
        if reward != y[-1]:
            x.append(time / _HOUR_S)
            y.append(reward)
    return ([*x, run_length(run, clock) / _HOUR_S], [*y, y[-1]]) if known else None


def _figure(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    return figure, figure.add_subplot(xlabel=x_label, ylabel=y_label)


def _draw_budget(axes: Axes, curve: BudgetCurve, series: int) -> None:
    known = [(point.hours, point.reward, point.reward.value) for point in curve.points]
    points = [(hours, value, reward.low, reward.high) for hours, reward, value in known if value is not None]
    values = [value for _hours, value, _low, _high in points]
    low, high = (_or([point[limit] for point in points], values) for limit in (2, 3))
    _draw_line(axes, series, [point[0] for point in points], (values, low, high), steps=False)


def _draw_line(axes: Axes, series: int, x: Sequence[float], y: tuple[Sequence[float], ...], *, steps: bool) -> None:
    mean, low, high = y
    axes.fill_between(x, low, high, step="post" if steps else None, color=_colour(series), alpha=0.16, lw=0)
    axes.plot(
        x, mean, lw=2, ls=_DASHES[series // len(COLOURS) % len(_DASHES)], color=_colour(series), marker=_marker(series),
        markersize=4.5, markevery=0.2 if len(x) > _FEW else 1, drawstyle="steps-post" if steps else "default",
    )  # fmt: skip


def _or(limits: Sequence[float | None], means: Sequence[float]) -> list[float]:
    """Return the limits, with None replaced by the mean."""
    return [mean if limit is None else limit for limit, mean in zip(limits, means, strict=True)]


def _draw_levels(axes: Axes) -> None:
    for text, value in (("baseline", 0.0), ("reference", 1.0)):
        axes.axhline(value, color="#5b6470", lw=1, ls=(0, (2, 2)))
        axes.annotate(text, (1, value), xycoords=("axes fraction", "data"), xytext=(-2, 2), textcoords="offset points",
                      ha="right", va="bottom", fontsize=8, color="#5b6470")  # fmt: skip


def _colour(series: int) -> str:
    return COLOURS[series % len(COLOURS)]


def _marker(series: int) -> str:
    return _MARKERS[series % len(_MARKERS)]


def _address(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = _PATH.sub(lambda path: _DECIMALS.sub(r"\1", path[0]), buffer.getvalue())
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
