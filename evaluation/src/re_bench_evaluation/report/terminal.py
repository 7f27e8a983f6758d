"""Format a report as text tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.tables import dollars, hours, number, printable, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench_evaluation.report.data import AnchorsInfo, Cell, Estimate, Leaderboard, ReportData, TaskInfo
    from re_bench_evaluation.report.findings import Scan

_MAX_PROBLEMS = 20
_MAX_FINDINGS = 20
_MAX_LINE = 160
_CELLS = ("evaluation", "agent", "model", "reward", "95 %", "n", ">0", ">1", "attempts", "invalid", "cost", "wall h",
          "work h")  # fmt: skip
_FINDINGS = ("severity", "check", "run", "attempt", "finding")
_TASKS = ("task", "starting", "reference", "source", "age", "spread", "validation")


@dataclass(frozen=True)
class Section:
    """A table with a title above it and notes below it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    names: int = 0
    """Number of leading columns that are repeated when a wide table is split; 0 prevents splitting."""


def sections(data: ReportData) -> Iterator[Section]:
    """Yield the tables of a report, from top to bottom."""
    yield from (_leaderboard(board) for board in data.leaderboards)
    for task in data.tasks:
        cells = [cell for cell in data.cells if cell.task == task.key]
        if cells:
            yield _cells(task, cells, data)
    if data.tasks:
        yield Section("tasks", _TASKS, [_task(task) for task in data.tasks])
    for evaluation in data.evaluations:
        if evaluation.scan:
            yield _scan(evaluation.name, evaluation.scan)
    if data.problems:
        shown = [[problem.path, problem.text] for problem in data.problems[:_MAX_PROBLEMS]]
        more = len(data.problems) - len(shown)
        notes = [f"and {more} more (see --json)"] if more else []
        yield Section(f"problems: {len(data.problems)}", ("path", "problem"), shown, notes)


def as_text(data: ReportData, width: int | None = None) -> str:
    """Return a report as plain text.

    Tables wider than ``width`` characters are split: the remaining columns follow below, after the name columns, which
    are repeated.
    """
    blocks = []
    for section in sections(data):
        rows = [[_clean(cell) for cell in row] for row in (section.header, *section.rows)]
        parts = []
        for columns in _parts(rows, section.names, width):
            header, *lines = ([row[column] for column in columns] for row in rows)
            parts.append(table(header, lines))
        blocks.append(
            "\n".join([_clean(section.title), "\n\n".join(parts), *(f"* {_clean(note)}" for note in section.notes)])
        )
    return "\n\n".join(blocks)


def _parts(rows: Sequence[Sequence[str]], names: int, width: int | None) -> Iterator[list[int]]:
    """Yield the indices of the columns in each part of a table, which is split if it is too wide."""
    widths = [2 + max(map(len, column)) for column in zip(*rows, strict=True)]
    part = list(range(names))
    for column in range(names, len(widths)):
        if width and 0 < names < len(part) and sum(widths[chosen] for chosen in (*part, column)) - 2 > width:
            yield part
            part = list(range(names))
        part.append(column)
    yield part


def _clean(text: str) -> str:
    """Return untrusted text as one printable line of limited length."""
    line = printable(text)
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."


def _leaderboard(board: Leaderboard) -> Section:
    figures = (*board.tasks, "overall", "95 %", "behind by") if board.ranked else board.tasks
    header = ("evaluation", "agent", "model", *figures, "n", "cost", "hours/run")
    rows, notes = [], [flag.text for flag in board.flags]
    for row in board.rows:
        name = (row.evaluation, row.agent, row.model or "-")
        scores = [_value(row.by_task.get(task)) for task in board.tasks]
        if board.ranked:
            behind = [_value(row.ahead), _bracketed(row.ahead)] if row.ahead else ["-"]
            scores += [_value(row.overall), _interval(row.overall), " ".join(behind)]
        rows.append([*name, *scores, str(row.runs), dollars(row.dollars), hours(row.working_h)])
        if row.worst_case:
            figure = f"{_value(row.worst_case)} {_bracketed(row.worst_case)}".rstrip()
            notes.append(f"{' '.join(filter(None, name[:2]))}: overall {figure} if failed runs count as 0")
    return Section(f"leaderboard, profile {board.profile}", header, rows, notes, names=3)


def _bracketed(estimate: Estimate) -> str:
    return "" if estimate.low is None else f"[{_interval(estimate)}]"


def _cells(task: TaskInfo, cells: Sequence[Cell], data: ReportData) -> Section:
    notes = []
    for cell in cells:
        who = " ".join(filter(None, (cell.evaluation, cell.agent, cell.model)))
        own = [flag.text for flag in cell.flags if flag not in task.flags]
        notes += [f"{who}: {'; '.join(own)}"] if own else []
        metr = data.metr_reward(cell)
        notes += [] if metr is None else [f"{who}: mean METR-equivalent reward {number(metr, 3)}"]
        notes += [_refusals(cell, who)] if cell.refusals else []
    title = f"{task.key}: {task.title}"
    return Section(
        title, _CELLS, [_cell(cell) for cell in cells], [*(flag.text for flag in task.flags), *notes], names=3
    )


def _cell(cell: Cell) -> list[str]:
    shares = ["-" if share is None else f"{share:.0%}" for share in (cell.above_0, cell.above_1)]
    times = [hours(cell.wall_h), hours(cell.working_h)]
    counts = [str(cell.attempts), str(cell.invalid), dollars(cell.dollars)]
    names = [cell.evaluation, cell.agent, cell.model or "-"]
    return [*names, _value(cell.reward), _interval(cell.reward), str(cell.reward.n), *shares, *counts, *times]


def _refusals(cell: Cell, who: str) -> str:
    first = cell.refusals[0]
    others = len(cell.refusals) - 1
    more = f"; {others} more reason{'s' * (others > 1)}" if others else ""
    return f"{who}: {first.count}x invalid: {first.message}{more}"


def _task(task: TaskInfo) -> list[str]:
    anchors, validation = task.anchors, task.validation
    state = "unknown"
    if validation:
        passed = sum(row.passed for row in validation.rows)
        state = f"{'passed' if validation.passed else 'FAILED'}, {passed} of {len(validation.rows)} ({validation.time})"
    if anchors is None:
        return [task.key, "-", "-", "-", "-", "-", state]
    age = "-" if anchors.age_days is None else f"{anchors.age_days} days"
    source = " ".join(filter(None, (anchors.kind, anchors.hardware, anchors.model)))
    scores = [number(anchors.starting), number(anchors.reference)]
    return [task.key, *scores, source, age, _spread(anchors), state]


def _scan(name: str, scan: Scan) -> Section:
    shown = scan.findings[:_MAX_FINDINGS]
    rows = [[one.severity, one.check, one.run or "-", str(one.attempt or "-"), one.text] for one in shown]
    title = f"re-bench scan of {name} at {scan.time}: {len(scan.findings)} findings from {len(scan.checks)} checks"
    more = len(scan.findings) - len(shown)
    return Section(title, _FINDINGS, rows, [*scan.left_out, *([f"and {more} more (see --json)"] if more else [])])


def _spread(anchors: AnchorsInfo) -> str:
    if anchors.starting_spread is None or anchors.reference_spread is None:
        return "-"
    return f"{anchors.starting_spread:.3g} / {anchors.reference_spread:.3g}"


def _value(estimate: Estimate | None) -> str:
    return number(estimate.value if estimate else None, 3)


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.3f} to {estimate.high:.3f}"
