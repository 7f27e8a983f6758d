"""What runs of an evaluation have cost, or may cost, and the cap on all of them together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from re_bench.records import SERVER
from re_bench_evaluation.agents import Usage, is_mlab, mlab_has_begun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench.records import RunRecord, TaskRecord
    from re_bench_evaluation.plan import Plan


class DollarCap:
    """Keeps, for every run, what it has cost or may still cost; all of them together stay within the cap.

    A run starts only if what others have spent, the most that running ones may cost, and the most that it may cost
    itself fit. So as long as runs keep to their own budgets, no order of starts, ends and failures goes over the cap.
    """

    def __init__(self, cap: float | None, spent: Mapping[str, float]) -> None:
        """Begin.

        Args:
            cap: dollars; None for no cap.
            spent: what runs have cost before, in dollars, by their names.
        """
        self.cap = cap
        self._amounts = dict(spent)

    @property
    def committed(self) -> float:
        """What has been spent, and what running runs may spend at most, in dollars."""
        return math.fsum(self._amounts.values())

    def start(self, run: str, most: float) -> bool:
        """Reserve for a run what it may have cost at its end, tries before included; tell whether the cap allows it.

        Args:
            run: its name.
            most: dollars.
        """
        others = [amount for name, amount in self._amounts.items() if name != run]
        if self.cap is not None and math.fsum([*others, most]) > self.cap:
            return False
        self._amounts[run] = most
        return True

    def end(self, run: str, spent: float) -> None:
        """Replace what was reserved for a run by what it has cost, in dollars."""
        self._amounts[run] = spent


def goes_on(run: Path, record: RunRecord, plan: Plan) -> bool:
    """Tell whether a run can go on where it was: its agent is mlab-agent, and its session has not been handed in."""
    can_resume = is_mlab(plan, record) and mlab_has_begun(run) and (run / SERVER).is_dir()
    return can_resume and Usage.of_run(run).reason != "model"


def most_dollars(run: Path, record: RunRecord, task: TaskRecord, plan: Plan) -> float:
    """Return what a run that has not ended will have cost at most, tries before included, if it keeps to its budget."""
    budget = plan.budget
    before = record.earlier_dollars if goes_on(run, record, plan) else cost_so_far(run, record, plan)
    asks_model = task.model is not None and not task.stand_in
    return before + (budget.dollars or 0.0) + ((budget.task_dollars or 0.0) if asks_model else 0.0)


def cost_so_far(run: Path, record: RunRecord, plan: Plan) -> float:
    """Return what all tries at a run have cost, in dollars, or may have; none of them runs any more."""
    return record.earlier_dollars + cost_of_try(run, record, plan) + (record.task_dollars or 0.0)


def cost_of_try(run: Path, record: RunRecord, plan: Plan) -> float:
    """Return what the agent's model has cost in the present try, in dollars.

    What is not known counts with the whole budget: what an agent has cost that reported nothing, or was stopped and may
    have spent more than it has reported. mlab-agent reports what a call may cost before it makes it.
    """
    reported = Usage.of_run(run).dollars if is_mlab(plan, record) else None
    if reported is not None:
        return reported
    return (record.dollars if record.dollars_at_most is None else record.dollars_at_most) or 0.0
