"""Render a report as one HTML file that asks nobody for anything.

Everything in :class:`ReportData` counts as written by an agent. Three things keep it from doing anything: the templates
escape every value; a Content-Security-Policy allows our script and our style, by their hashes, and nothing else; and
characters that are invisible or reorder a line stand as their code.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from re_bench_evaluation.report.html.figures import budget_plots, cost_plot, progress_plot
from re_bench_evaluation.report.html.filters import FILTERS
from re_bench_evaluation.report.html.fragments import RunRows
from re_bench_evaluation.report.html.plots import line_sample
from re_bench_evaluation.report.html.series import Series
from re_bench_evaluation.report.html.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench_evaluation.report.data import Clock, ReportData
    from re_bench_evaluation.report.html.plots import Plot
    from re_bench_evaluation.report.task_data import TaskInfo

_PACKAGE = "re_bench_evaluation.report.html"
_CLOCKS: tuple[Clock, ...] = ("wall", "working")


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    id: str
    """Also the name of its template."""
    title: str


SECTIONS = (
    Section("leaderboard", "Leaderboard"),
    Section("budget", "Expected best over a time budget"),
    Section("agents", "Tasks and agents"),
    Section("progress", "Best so far over time"),
    Section("cost", "Cost"),
    Section("scan", "Findings of the scan"),
    Section("runs", "Runs and their attempts"),
    Section("tasks", "The tasks' own state"),
    Section("sources", "Evaluations, hardware and versions"),
    Section("problems", "Problems when reading"),
)


def render(
    data: ReportData,
    *,
    title: str | None = None,
    sections: Sequence[str] | None = None,
    links: Sequence[tuple[str, str]] = (),
    live: int | None = None,
    series: Series | None = None,
) -> str:
    """Return a page of a report.

    Args:
        data: what it shows.
        title: of the page; by default the names of its evaluations.
        sections: which sections of :data:`SECTIONS` it has; all by default.
        links: other pages beside it: file and text.
        live: the number of the last event that the page holds, if a server sends it more; see
            :mod:`re_bench_evaluation.report.html.view`.
        series: the numbers of its agents, where other pages have the same.
    """
    series = series or Series.of(data)
    shown = [section for section in SECTIONS if sections is None or section.id in sections]
    rows = RunRows(environment(), data, series)
    runs = rows.pack(compressed=live is not None) if any(section.id == "runs" for section in shown) else None
    style, script = _asset("report.css"), _asset("report.js")
    return environment().get_template("page.html.j2").render(
        data=data,
        title=title or ", ".join(evaluation.name for evaluation in data.evaluations) or "Report",
        sections=shown,
        links=links,
        live=live,
        series=series,
        keys=Markup().join(line_sample(number) for number in series.labels()),
        style=style,
        script=script,
        policy=_policy(style, script, live=live is not None),
        packed=runs is not None and runs.compressed,
        run_fragments=() if runs is None else runs.fragments,
        budget_plots=lambda profile, number: _budget_plots(data, profile, series, f"budget-{number}"),
        progress_plots=lambda task, number: _progress_plots(data, task, series, f"progress-{number}"),
        cost_plot=lambda: cost_plot(data, series),
    )  # fmt: skip


def rows_of(data: ReportData) -> RunRows:
    """Return what renders single runs of a report."""
    return RunRows(environment(), data, Series.of(data))


@cache
def environment() -> Environment:
    """Return the templates: every value is escaped, and one that is missing is an error."""
    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    return made


def _budget_plots(data: ReportData, profile: str, series: Series, key: str) -> list[tuple[Clock, Plot]]:
    plots = {clock: budget_plots(data, profile, clock, series, key) for clock in _CLOCKS}
    return [(clock, plot) for clock in _CLOCKS for plot in plots[clock]]


def _progress_plots(data: ReportData, task: TaskInfo, series: Series, key: str) -> list[tuple[Clock, Plot | None]]:
    return [(clock, progress_plot(data, task, clock, series, key)) for clock in _CLOCKS]


@cache
def _asset(name: str) -> Markup:
    return Markup(resources.files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8"))  # noqa: S704 - ours


def _policy(style: str, script: str, *, live: bool) -> str:
    allowed = {"style-src": style, "script-src": script}
    hashes = [f"{name} 'sha256-{_sha256(text)}'" for name, text in allowed.items()]
    connect = ["connect-src 'self'"] if live else []
    return "; ".join(["default-src 'none'", *hashes, *connect, "base-uri 'none'", "form-action 'none'"])


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
