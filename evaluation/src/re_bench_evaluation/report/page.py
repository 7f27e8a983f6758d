"""Render a report as one self-contained HTML file.

All values in :class:`ReportData` are untrusted. Therefore the templates escape every value, show invisible and
bidirectional characters as escape sequences, and set a Content-Security-Policy that allows only inline images and the
page's own script and style.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from re_bench.data.files import replace_file
from re_bench.errors import UsageError
from re_bench.tables import dollars, hours, number
from re_bench_evaluation.report.data import TaskInfo
from re_bench_evaluation.report.plots import COLOURS, budget_figure, cost_figure, progress_figure
from re_bench_evaluation.report.text import mean_of_known, sum_of_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from re_bench_evaluation.report.data import Flag, ReportData, RunInfo

_PACKAGE = "re_bench_evaluation.report"
_MAX_NAME = 120
_MARKERS = "\u25cf\u25a0\u25c6\u25b2\u25bc\u271a\u2716"
"""Characters that look like the markers of the figures, in the same order."""
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_MANY_MARKS = re.compile(f"({_MARKS}{{3}}){_MARKS}+")
_DIFF_KINDS = {"+": "ins", "-": "del"}


def render(data: ReportData, *, refresh_s: int | None = None) -> str:
    """Return a report as HTML; with ``refresh_s``, browsers reload the page at that interval."""
    series = Series(data)
    style, script = (resources.files(_PACKAGE).joinpath("templates", name).read_text() for name in _ASSETS)
    return environment().get_template("page.html.j2").render(
        data=data,
        series=series,
        runs_by_key={run.key: run for run in data.runs},
        title=", ".join(evaluation.name for evaluation in data.evaluations) or "Report",
        refresh_s=refresh_s,
        style=Markup(style),  # noqa: S704 - trusted
        script=Markup(script),  # noqa: S704 - trusted
        policy=_policy(style, script),
        budget_figure=lambda profile, of: budget_figure(data, profile, of, series.number),
        progress_figure=lambda task, of: progress_figure(data, task, of, series.number),
        cost_figure=cost_figure(data, series.number),
    )  # fmt: skip


def write_page(data: ReportData, path: Path) -> None:
    """Write a report as an HTML file, atomically."""
    try:
        replace_file(path, render(data).encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot write the page: {error.strerror}") from None


class Series:
    """Number each evaluation's pairs of agent and model; the numbers determine their styles in all figures."""

    def __init__(self, data: ReportData) -> None:
        names = {evaluation.key: evaluation.name for evaluation in data.evaluations}
        self._labels: dict[tuple[str, str, str | None], str] = {}
        rows: list[Any] = [row for board in data.leaderboards for row in board.rows]
        for entry in (*rows, *data.cells, *data.runs):
            name = entry.agent if entry.model is None else f"{entry.agent}, {entry.model}"
            label = name if len(names) < 2 else f"{name} ({names[entry.evaluation]})"  # noqa: PLR2004
            self._labels.setdefault(self._key(entry), label)
        self._numbers = {key: number for number, key in enumerate(self._labels)}
        counts = Counter(task.name for task in data.tasks)
        self._tasks = {task.key: task.name if counts[task.name] == 1 else task.key for task in data.tasks}

    def number(self, entry: Any) -> int:
        """Return the number that determines the style of a cell, run, row or curve."""
        return self._numbers[self._key(entry)]

    def label(self, entry: Any) -> str:
        """Return the agent and model of an entry as text, with the evaluation's name if there are several."""
        return self._labels[self._key(entry)]

    def labels(self) -> dict[int, str]:
        """Return all labels by number."""
        return dict(enumerate(self._labels.values()))

    def task(self, key: str) -> str:
        """Return the name of a task, or its key if several tasks have that name."""
        return self._tasks[key]

    @staticmethod
    def _key(entry: Any) -> tuple[str, str, str | None]:
        return entry.evaluation, entry.agent, entry.model


_ASSETS = ("report.css", "report.js")


def _policy(style: str, script: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    style_hash, script_hash = (f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; img-src data:; style-src {style_hash}; script-src {script_hash}; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """Return the Jinja environment of the templates; it escapes values and rejects undefined names."""
    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(_FILTERS)
    return made


def visible(value: object) -> object:
    """Escape control and bidirectional characters in a text, and shorten sequences of combining marks to three.

    Trusted markup and values that are not text are returned unchanged.
    """
    if not isinstance(value, str) or isinstance(value, Markup) or (value.isascii() and value.isprintable()):
        return value
    shown = _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], value)
    return shown if shown.isascii() else _MANY_MARKS.sub(r"\1", shown)


def diff_markup(diff: str) -> Markup:
    """Return a unified diff as HTML, with added lines in ``ins`` and removed lines in ``del`` elements."""
    lines = str(visible(diff)).splitlines(keepends=True)
    groups = ((kind, escape("".join(group))) for kind, group in groupby(lines, key=_diff_kind))
    return Markup("".join(f"<{kind}>{text}</{kind}>" if kind else text for kind, text in groups))  # noqa: S704 - escaped


def _diff_kind(line: str) -> str:
    return "" if line.startswith(("+++ ", "--- ")) else _DIFF_KINDS.get(line[:1], "")


def _cut(text: str, length: int = _MAX_NAME) -> str:
    return text if len(text) <= length else f"{text[:length]} [... {len(text) - length} more characters]"


def _flags_of(entries: Iterable[Any]) -> dict[Flag, list[str]]:
    """Return the distinct flags of tasks, cells or rows, each with the names of the tasks that have it."""
    tasks: dict[Flag, list[str]] = {}
    for entry in entries:
        for flag in entry.flags:
            tasks.setdefault(flag, []).extend([entry.name] if isinstance(entry, TaskInfo) else [])
    return tasks


def _run_id(run: RunInfo) -> str:
    return f"run-{hashlib.sha256(run.key.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _duration(seconds: float | None) -> str:
    """Format seconds as ``0:12:30``, always with hours, so that the page can sort durations."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


_FILTERS: dict[str, Callable[..., object]] = {
    "cut": _cut,
    "diff": diff_markup,
    "flags_of": _flags_of,
    "run_id": _run_id,
    "task_of": lambda key, data: next(task for task in data.tasks if task.key == key),
    "task_name": lambda key, series: series.task(key),
    "dollars": dollars,
    "hours": hours,
    "number": number,
    "figures": lambda value: "-" if value is None else f"{value:.5g}",
    "percent": lambda share: "-" if share is None else f"{share:.0%}",
    "duration": _duration,
    "words": lambda name: name.replace("_", " "),
    "on_scale": lambda reward: f"{100 * min(max(reward, 0.0), 1.25):.1f}",
    "count_of": lambda count, noun: f"{count:,} {noun}{'' if count == 1 else 's'}",
    "marker": lambda number: _MARKERS[number % len(COLOURS)],
    "total": lambda runs, name: sum_of_known(getattr(run, name) for run in runs),
    "mean": lambda runs, name: mean_of_known(getattr(run, name) for run in runs),
    "as_json": lambda value: json.dumps(value, indent=1, ensure_ascii=False),
}
