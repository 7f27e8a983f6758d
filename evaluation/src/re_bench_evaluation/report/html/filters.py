"""How values of a report stand on its pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from re_bench.tables import dollars, hours, number
from re_bench_evaluation.report.html.fragments import run_id
from re_bench_evaluation.report.html.plots import draw
from re_bench_evaluation.report.html.text import breakable, diff_markup
from re_bench_evaluation.report.task_data import TaskInfo
from re_bench_evaluation.report.text import mean_of_known, sum_of_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from re_bench_evaluation.report.data import ReportData
    from re_bench_evaluation.report.html.plots import Plot
    from re_bench_evaluation.report.run_data import RunInfo
    from re_bench_evaluation.report.task_data import Flag

_LONGEST_NAME = 120
_MARKERS = "\u25cf\u25a0\u25c6\u25b2\u25bc\u271a\u2716"
_SCALE = (0.0, 1.25)
_WORDS = {"stand_in": "stand-in answers"}


def cut(text: str, length: int) -> str:
    """Return the beginning of a text, and how much is missing."""
    return text if len(text) <= length else f"{text[:length]} [... {len(text) - length} more characters]"


def short(text: str) -> str:
    """Return a name for a place where a line is long enough."""
    return cut(text, _LONGEST_NAME)


def raw(value: float | None) -> str:
    """Return a number for a script that sorts by it, nothing for none."""
    return "" if value is None else repr(value)


def figures(value: float | None) -> str:
    """Return a number of unknown size to five figures, a dash for none."""
    return "-" if value is None else f"{value:.5g}"


def percent(share: float | None) -> str:
    """Return a share in percent, a dash for none."""
    return "-" if share is None else f"{share:.0%}"


def duration(seconds: float | None) -> str:
    """Return seconds as hours, minutes and seconds, a dash for none."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def words(name: str) -> str:
    """Return the name of a flag's kind as a person would write it."""
    return _WORDS.get(name, name.replace("_", " "))


def on_scale(reward: float) -> str:
    """Return where a reward lies on the scale of an interval's picture, from 0 to 125."""
    low, high = _SCALE
    return f"{100 * min(max(reward, low), high):.1f}"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def marker(series: int) -> str:
    """Return the character that looks like the marker of an agent's line."""
    return _MARKERS[series % len(_MARKERS)]


def flags_of(entries: Iterable[Any]) -> dict[Flag, list[str]]:
    """Return the flags of tasks, cells and the like, each text once, with the names of the tasks that have it."""
    tasks: dict[Flag, list[str]] = {}
    for entry in entries:
        for flag in entry.flags:
            tasks.setdefault(flag, []).extend([entry.name] if isinstance(entry, TaskInfo) else [])
    return tasks


def run_of(key: str | None, data: ReportData) -> RunInfo | None:
    """Return the run of a key, None for none."""
    return next((run for run in data.runs if run.key == key), None)


def total(runs: Sequence[RunInfo], name: str) -> float | None:
    """Return the sum of a field over the runs where it is known, None where it is of none."""
    return sum_of_known(getattr(run, name) for run in runs)


def mean(runs: Sequence[RunInfo], name: str) -> float | None:
    """Return the mean of a field over the runs where it is known, None where it is of none."""
    return mean_of_known(getattr(run, name) for run in runs)


def attempt_count(runs: Sequence[RunInfo]) -> int:
    """Return how many attempts runs have together."""
    return sum(len(run.attempts) for run in runs)


def known_plots(plots: Sequence[tuple[str, Plot | None]]) -> int:
    """Return how many clocks there are figures of."""
    return len({clock for clock, plot in plots if plot is not None})


def as_json(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, indent=1, ensure_ascii=False)


def task_of(key: str, data: ReportData) -> TaskInfo:
    """Return the task of a key."""
    return data.task(key)


FILTERS: dict[str, Callable[..., object]] = {
    **{
        f.__name__: f
        for f in (
            breakable,
            cut,
            short,
            raw,
            figures,
            percent,
            duration,
            words,
            on_scale,
            count_of,
            marker,
            flags_of,
            total,
        )
    },
    **{f.__name__: f for f in (mean, run_of, run_id, attempt_count, as_json, task_of, draw, dollars, hours, number)},
    "known": known_plots,
    "diff": diff_markup,
}
