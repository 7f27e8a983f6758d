"""Number what is compared in a report, so that one agent has the same colour, dashes and marker in every figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from re_bench_evaluation.report.data import ReportData


class OfAgent(Protocol):
    """What says whose it is: a cell, a run, a row of a leaderboard, a curve."""

    @property
    def evaluation(self) -> str:
        """The key of its evaluation."""

    @property
    def agent(self) -> str:
        """The agent's name."""

    @property
    def model(self) -> str | None:
        """The model's name."""


@dataclass(frozen=True)
class Series:
    """The numbers of agents and models of one report, in the order of its leaderboards."""

    numbers: dict[tuple[str, str, str | None], int]
    evaluations: dict[str, str]
    """Names of evaluations by key; empty unless there are several, when a label has to say which."""
    tasks: dict[str, str]
    """Names of tasks by key: with profile and version where the name alone would not tell them apart."""

    @classmethod
    def of(cls, data: ReportData) -> Series:
        """Number the agents and models of a report."""
        everything: list[OfAgent] = [
            *(row for board in data.leaderboards for row in board.rows),
            *data.cells,
            *data.runs,
        ]
        keys = dict.fromkeys((entry.evaluation, entry.agent, entry.model) for entry in everything)
        names = {entry.key: entry.name for entry in data.evaluations} if len(data.evaluations) > 1 else {}
        counts = Counter(task.name for task in data.tasks)
        tasks = {task.key: task.name if counts[task.name] == 1 else task.key for task in data.tasks}
        return cls({key: number for number, key in enumerate(keys)}, names, tasks)

    def of_part(self, part: ReportData) -> Series:
        """Return the same numbers for those that are in a part of the report."""
        there = Series.of(part).numbers
        return replace(self, numbers={key: number for key, number in self.numbers.items() if key in there})

    def number(self, entry: OfAgent) -> int:
        """Return the number of the agent and model of ``entry``."""
        return self.numbers[entry.evaluation, entry.agent, entry.model]

    def label(self, entry: OfAgent) -> str:
        """Return what the agent and model of ``entry`` are called on a page."""
        return self._label((entry.evaluation, entry.agent, entry.model))

    def task_label(self, key: str) -> str:
        """Return what a task is called on a page."""
        return self.tasks[key]

    def labels(self) -> dict[int, str]:
        """Return all labels by number."""
        return {number: self._label(key) for key, number in self.numbers.items()}

    def _label(self, key: tuple[str, str, str | None]) -> str:
        evaluation, agent, model = key
        name = agent if model is None else f"{agent}, {model}"
        return f"{name} ({self.evaluations[evaluation]})" if evaluation in self.evaluations else name
