"""Tables of an evaluation: how its cells are, and what they may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from re_bench.records import RunState
from re_bench.tables import number, printable, table
from re_bench_evaluation.report.text import sum_of_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from re_bench.records import RunRecord
    from re_bench_evaluation.plan import Plan

CELL_HEADER = ("agent", "model", "task", "waiting", "running", "ended", "failed", "best reward", "hours", "dollars")
_STATES: tuple[RunState, ...] = get_args(RunState)
_HOUR_S = 3600.0


@dataclass(frozen=True)
class Cell:
    """The runs of one agent and model at one task, together."""

    agent: str
    model: str | None
    task: str
    states: dict[RunState, int]
    best_reward: float | None
    hours: float
    """Working time."""
    dollars: float | None
    """None if nothing is known of any run."""

    def row(self) -> list[str]:
        """Return its row under :data:`CELL_HEADER`."""
        cost = "-" if self.dollars is None else f"{self.dollars:.2f}"
        counts = [str(self.states[state] or "") for state in _STATES]
        name = [self.agent, self.model or "-", self.task]
        return [*name, *counts, number(self.best_reward), f"{self.hours:.2f}", cost]


def cells(runs: Iterable[RunRecord]) -> list[Cell]:
    """Return the cells of runs, in the order in which they come."""
    grouped: dict[tuple[str, str | None, str], list[RunRecord]] = {}
    for run in runs:
        grouped.setdefault((run.agent, run.model, run.task), []).append(run)
    return [_cell(*key, group) for key, group in grouped.items()]


def _cell(agent: str, model: str | None, task: str, runs: Sequence[RunRecord]) -> Cell:
    states = [run.state for run in runs]
    return Cell(
        agent,
        model,
        task,
        {state: states.count(state) for state in _STATES},
        max((run.reward for run in runs if run.reward is not None), default=None),
        sum(run.working_s or 0.0 for run in runs) / _HOUR_S,
        sum_of_known(cost for run in runs for cost in (run.dollars, run.task_dollars, run.earlier_dollars or None)),
    )


def cell_table(runs: Iterable[RunRecord]) -> str:
    """Return the table of all cells."""
    return table(CELL_HEADER, [cell.row() for cell in cells(runs)])


def failures(runs: Iterable[RunRecord]) -> list[str]:
    """Return a line for each run that failed, or was not started."""
    return [f"{run.run}: {printable(run.reason)}" for run in runs if run.state in {"failed", "waiting"} and run.reason]


@dataclass(frozen=True)
class CellEstimate:
    """What the runs of a cell may use at most."""

    agent: str
    model: str | None
    task: str
    runs: int
    ended: int
    hours: float
    dollars: float | None

    def row(self) -> list[str]:
        """Return its row of the table."""
        cost = "unknown" if self.dollars is None else f"{self.dollars:.2f}"
        return [self.agent, self.model or "-", self.task, str(self.runs), str(self.ended), f"{self.hours:g}", cost]


@dataclass(frozen=True)
class Estimate:
    """What a plan may use at most, as far as it says so."""

    runs: int
    ended: int
    hours: float
    """Working time of the runs that have not ended."""
    dollars: float | None
    """What the runs that have not ended may cost, of which each may be tried once; None if that is not bounded."""
    cap: float | None
    cells: list[CellEstimate]


def estimate(plan: Plan, runs: Sequence[RunRecord], unpriced: Sequence[str], asking: Sequence[str]) -> Estimate:
    """Return what a plan may use from now on.

    Args:
        plan: the plan.
        runs: all of its runs.
        unpriced: models whose cost is not known.
        asking: the tasks that ask a real chat model.
    """
    rows = []
    for cell in cells(runs):
        left = sum(cell.states[state] for state in _STATES if state != "ended")
        bounds = [plan.budget.dollars, *([plan.budget.task_dollars] if cell.task in asking else [])]
        bounded = None not in bounds and cell.model not in unpriced
        each = sum(bound for bound in bounds if bound is not None) if bounded else None
        ended = cell.states["ended"]
        hours, cost = left * plan.budget.hours, None if each is None else left * each
        rows.append(CellEstimate(cell.agent, cell.model, cell.task, left + ended, ended, hours, cost))
    known = [row.dollars for row in rows if row.dollars is not None]
    return Estimate(
        runs=len(runs),
        ended=sum(row.ended for row in rows),
        hours=sum(row.hours for row in rows),
        dollars=sum(known) if len(known) == len(rows) else None,
        cap=plan.dollars,
        cells=rows,
    )


def estimate_table(estimated: Estimate) -> str:
    """Return the cells, and below them what all may cost."""
    rows = [cell.row() for cell in estimated.cells]
    header = ("agent", "model", "task", "runs", "ended", "hours at most", "dollars at most")
    cost = "a cost that no budget limits" if estimated.dollars is None else f"${estimated.dollars:.2f}"
    cap = "" if estimated.cap is None else f"; together never more than ${estimated.cap:.2f}"
    left = estimated.runs - estimated.ended
    to_go = f"{left} run{'' if left == 1 else 's'} to go"
    return f"{table(header, rows)}\n\n{to_go}, {estimated.hours:g} hours and {cost} at most{cap}"
