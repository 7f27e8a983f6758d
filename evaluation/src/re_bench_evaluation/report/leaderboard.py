"""Build the leaderboards: one for each profile, since scores of different profiles are not comparable."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from re_bench_evaluation.report.data import Estimate, Flag, Leaderboard, LeaderRow
from re_bench_evaluation.report.estimates import hours_of, mean_over_tasks, planned_hours
from re_bench_evaluation.report.text import mean_of_known, sum_of_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from re_bench_evaluation.report.data import Cell, EvaluationInfo, FlagKind, RunInfo, TaskInfo

_WARNED: tuple[tuple[FlagKind, str], ...] = (
    ("modelled", "modelled scores"),
    ("stand_in", "scores with a stand-in chat model"),
)


def make_leaderboards(
    cells: Sequence[Cell],
    runs: Mapping[str, RunInfo],
    tasks: Mapping[str, TaskInfo],
    evaluations: Mapping[str, EvaluationInfo],
) -> list[Leaderboard]:
    """Return the leaderboards, sorted by profile.

    Evaluations have separate rows, because their plans may differ. Overall scores cover the tasks for which all rows
    with finished runs have finished runs.
    """
    boards = []
    for profile in sorted({tasks[cell.task].profile for cell in cells}):
        groups: dict[tuple[str, str, str | None], list[Cell]] = defaultdict(list)
        for cell in cells:
            if tasks[cell.task].profile == profile:
                groups[cell.evaluation, cell.agent, cell.model].append(cell)
        keys = sorted({cell.task for group in groups.values() for cell in group})
        scored = [{cell.task for cell in group if cell.reward.n} for group in groups.values()]
        counting = [names for names in scored if names]  # ignore rows without any finished run
        shared = sorted(set.intersection(*counting)) if counting else []
        rows = [_row(group, shared, runs) for group in groups.values()]
        rows.sort(key=lambda row: (-_place(row), row.evaluation, row.agent, row.model or ""))
        flags = _flags(keys, shared, [evaluations[group[0].evaluation] for group in groups.values()], tasks)
        boards.append(Leaderboard(profile, tuple(keys), tuple(shared), tuple(rows), tuple(flags)))
    return boards


def _place(row: LeaderRow) -> float:
    return -math.inf if row.overall.value is None else row.overall.value


def _row(cells: Sequence[Cell], shared: Sequence[str], runs: Mapping[str, RunInfo]) -> LeaderRow:
    own = [runs[key] for cell in cells for key in cell.runs]
    scores = {cell.task: [counted for key in cell.runs if (counted := runs[key].counted) is not None] for cell in cells}
    paid = sum(run.dollars is not None or run.task_dollars is not None for run in own)
    dollars = sum_of_known(cell.dollars for cell in cells)
    return LeaderRow(
        evaluation=cells[0].evaluation,
        agent=cells[0].agent,
        model=cells[0].model,
        by_task={cell.task: cell.reward for cell in cells},
        overall=mean_over_tasks([scores.get(key, []) for key in shared]) if shared else Estimate(None, None, None, 0),
        dollars=dollars,
        dollars_per_run=None if dollars is None else dollars / paid,
        wall_h=hours_of(mean_of_known(run.wall_s for run in own)),
        working_h=hours_of(mean_of_known(run.working_s for run in own)),
        runs=sum(map(len, scores.values())),
        flags=tuple(dict.fromkeys(flag for cell in cells for flag in cell.flags)),
    )


def _flags(
    keys: Sequence[str], shared: Sequence[str], evaluations: Sequence[EvaluationInfo], tasks: Mapping[str, TaskInfo]
) -> Iterator[Flag]:
    """Yield the flags of a leaderboard: the reasons why its rows are less comparable than they look."""
    others = sorted(set(keys) - set(shared))
    if others:
        overall = f"overall score covers {len(shared)} of {len(keys)} tasks" if shared else "no overall score"
        yield Flag("tasks", f"{overall}; some rows lack {', '.join(others)}")
    names = [tasks[key].name for key in keys]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        yield Flag("tasks", f"{', '.join(repeated)}: one column per version or set of anchors")
    budgets = {hours for evaluation in evaluations if (hours := planned_hours(evaluation)) is not None}
    if len(budgets) > 1:
        yield Flag("budgets", f"runs had different budgets: {', '.join(f'{hours:g} h' for hours in sorted(budgets))}")
    for kind, text in _WARNED:
        affected = [key for key in keys if any(flag.kind == kind for flag in tasks[key].flags)]
        if affected:
            yield Flag(kind, f"{text}: {', '.join(affected)}")
