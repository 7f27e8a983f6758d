"""The figures of a report, by matplotlib. No text of an agent stands in them: legends and captions are HTML."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from re_bench_evaluation.report.html.svg import SERIES, named_colour, series_colour, to_svg

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

_DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("solid", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)))
_MARKERS = "osD^vPX"
_INCHES = (5.6, 3.4)
_FEW = 12
"""So many points of a line have a marker each."""
_KEPT = 64
"""So many figures are kept: most of a page stay the same when an attempt is added, or are on another page too."""
_STYLE = {
    "font.size": 9.5,
    "axes.edgecolor": named_colour("muted"),
    "axes.labelcolor": named_colour("ink"),
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "xtick.color": named_colour("muted"),
    "xtick.labelcolor": named_colour("ink"),
    "ytick.color": named_colour("muted"),
    "ytick.labelcolor": named_colour("ink"),
    "axes.grid": True,
    "grid.color": named_colour("grid"),
    "grid.linewidth": 0.7,
    "path.simplify_threshold": 0.2,
}


@dataclass(frozen=True)
class Curve:
    """A line with a band around it; ``low`` and ``high`` are empty where there is none."""

    series: int
    """The number of its agent, which gives it colour, dashes and marker."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    steps: bool = False
    """Whether a value holds from its point to the next."""


@dataclass(frozen=True)
class Step:
    """The best reward of one run so far: it jumps at each ``x`` to the ``y`` there."""

    series: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    tooltip: str


@dataclass(frozen=True)
class Points:
    """Points of an agent that no line connects."""

    series: int
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Plot:
    """What a figure shows."""

    key: str
    title: str
    description: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...] = ()
    steps: tuple[Step, ...] = ()
    points: tuple[Points, ...] = ()
    levels: tuple[tuple[str, float], ...] = ()
    """Horizontal lines with the text beside them, such as the reference's reward."""
    log_x: bool = False
    limits: tuple[float, float, float, float] | None = None
    """Where the axes begin and end: x from, x to, y from, y to; where the data does by default."""


@lru_cache(maxsize=_KEPT)
def draw(plot: Plot) -> Markup:
    """Return a figure as SVG."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot(xlabel=plot.x_label, ylabel=plot.y_label)
        if plot.log_x:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        tooltips = dict(_draw_step(axes, number, step) for number, step in enumerate(plot.steps))
        for curve in plot.curves:
            _draw_curve(axes, curve)
        for points in plot.points:
            _draw_points(axes, points)
        if plot.limits:
            axes.axis(plot.limits)
        _draw_levels(axes, plot.levels)
        return to_svg(figure, plot.key, plot.title, plot.description, tooltips)


@lru_cache(maxsize=_KEPT)
def line_sample(series: int) -> Markup:
    """Return a short piece of an agent's line with its marker, as the SVG element ``key-SERIES`` for legends."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(0.5, 0.15))
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()
        axes.plot([0.04, 0.96], [0.5, 0.5], lw=2, color=series_colour(series), ls=_dashes(series))
        axes.plot([0.5], [0.5], marker=_marker(series), markersize=5.5, color=series_colour(series))
        return to_svg(figure, f"key-{series}", "", "", {})


def _draw_step(axes: Axes, number: int, step: Step) -> tuple[str, str]:
    name = f"run-{number}"
    axes.step(step.x, step.y, where="post", lw=0.8, alpha=0.35, color=series_colour(step.series), gid=name)
    return name, step.tooltip


def _draw_curve(axes: Axes, curve: Curve) -> None:
    colour = series_colour(curve.series)
    if curve.low:
        step: Literal["post"] | None = "post" if curve.steps else None
        axes.fill_between(curve.x, curve.low, curve.high, step=step, color=colour, alpha=0.16, lw=0)
    axes.plot(
        curve.x,
        curve.y,
        lw=2,
        ls=_dashes(curve.series),
        color=colour,
        drawstyle="steps-post" if curve.steps else "default",
        marker=_marker(curve.series),
        markersize=4.5,
        markevery=0.2 if len(curve.x) > _FEW else 1,
    )


def _draw_points(axes: Axes, points: Points) -> None:
    axes.plot(points.x, points.y, _marker(points.series), markersize=5, color=series_colour(points.series), alpha=0.7)


def _draw_levels(axes: Axes, levels: tuple[tuple[str, float], ...]) -> None:
    for text, value in levels:
        axes.axhline(value, color=named_colour("muted"), lw=1, ls=(0, (2, 2)))
        axes.annotate(text, (1, value), xycoords=("axes fraction", "data"), xytext=(-2, 2), textcoords="offset points",
                      ha="right", va="bottom", fontsize=8, color=named_colour("muted"))  # fmt: skip


def _dashes(series: int) -> str | tuple[int, tuple[float, ...]]:
    return _DASHES[series // SERIES % len(_DASHES)]


def _marker(series: int) -> str:
    return _MARKERS[series % len(_MARKERS)]
