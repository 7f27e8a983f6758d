"""Write a report into files: one page of everything, or a directory of static pages that fit a web server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from re_bench.data.files import replace_file
from re_bench.errors import UsageError
from re_bench_evaluation.report.html.page import render
from re_bench_evaluation.report.html.series import Series

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from re_bench_evaluation.report.data import ReportData

INDEX = "index.html"
"""The first page: leaderboard, headline figure, sources, problems."""
_ON_INDEX = ("leaderboard", "budget", "sources", "problems")
_OF_EVALUATION = ("leaderboard", "budget", "agents", "progress", "cost", "scan", "sources")
_OF_TASK = ("agents", "progress", "cost", "runs", "tasks")


def write_page(data: ReportData, path: Path) -> Path:
    """Write a report as one file, which is replaced as a whole, and return its path.

    Raises:
        UsageError: if it cannot be written.
    """
    return _write(path, render(data))


def write_site(data: ReportData, directory: Path) -> list[Path]:
    """Write a report as pages: an index, one for each evaluation, and one for each task with its runs and attempts.

    Returns:
        The files; others in the directory are left alone.

    Raises:
        UsageError: if they cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: it cannot be made: {error.strerror}") from None
    written = []
    for name, page in _pages(data):
        written.append(_write(directory / name, page))
    return written


def _pages(data: ReportData) -> Iterator[tuple[str, str]]:
    series = Series.of(data)
    evaluations = [(f"evaluation-{n}.html", entry) for n, entry in enumerate(data.evaluations, 1)]
    tasks = [(f"task-{n}.html", entry) for n, entry in enumerate(data.tasks, 1)]
    links = [(INDEX, "Leaderboard"), *((file, entry.name) for file, entry in evaluations)]
    links += [(file, series.task_label(entry.key)) for file, entry in tasks]
    yield INDEX, render(data, title="Leaderboard", sections=_ON_INDEX, links=links)
    for file, evaluation in evaluations:
        part = only_evaluation(data, evaluation.key)
        yield (
            file,
            render(part, title=evaluation.name, sections=_OF_EVALUATION, links=links, series=series.of_part(part)),
        )
    for file, task in tasks:
        part = only_task(data, task.key)
        title = series.task_label(task.key)
        yield file, render(part, title=title, sections=_OF_TASK, links=links, series=series.of_part(part))


def only_evaluation(data: ReportData, key: str) -> ReportData:
    """Return what a report holds of one evaluation."""
    runs = tuple(run for run in data.runs if run.evaluation == key)
    tasks = {run.task for run in runs}
    boards = [
        replace(board, rows=tuple(row for row in board.rows if row.evaluation == key)) for board in data.leaderboards
    ]
    return replace(
        data,
        evaluations=tuple(entry for entry in data.evaluations if entry.key == key),
        tasks=tuple(task for task in data.tasks if task.key in tasks),
        leaderboards=tuple(board for board in boards if board.rows),
        cells=tuple(cell for cell in data.cells if cell.evaluation == key),
        budgets=tuple(curve for curve in data.budgets if curve.evaluation == key),
        runs=runs,
    )


def only_task(data: ReportData, key: str) -> ReportData:
    """Return what a report holds of one task, without what is over all of them."""
    return replace(
        data,
        tasks=(data.task(key),),
        leaderboards=(),
        cells=tuple(cell for cell in data.cells if cell.task == key),
        budgets=(),
        runs=tuple(run for run in data.runs if run.task == key),
    )


def _write(path: Path, page: str) -> Path:
    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise UsageError(f"{path}: it cannot be written: {error.strerror}") from None
    return path
