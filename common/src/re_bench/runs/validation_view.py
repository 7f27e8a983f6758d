"""How a validation tells how far it is: by lines, or by whatever else knows the same calls."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from re_bench.processes import print_progress
from re_bench.runs.validation import brief

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from re_bench.scoring.score import Score

    Scorings = Mapping[Future[tuple[Score, float]], str]


class ValidationView(Protocol):
    """What a validation tells of itself while it runs."""

    def submitted(self, scorings: Scorings) -> None:
        """Take scorings that wait or run from now on, each with the name of its solution; more may come later."""

    def scored(self, name: str, score: Score, elapsed: float) -> None:
        """Take one that has ended, with the seconds that it took."""


class LineView:
    """A line on stderr for each scoring that has ended."""

    def __init__(self, task: str) -> None:
        """Begin to count seconds.

        Args:
            task: its name, with which the lines begin.
        """
        self._task, self._began = task, time.monotonic()

    def submitted(self, scorings: Scorings) -> None:
        """Do nothing."""

    def scored(self, name: str, score: Score, elapsed: float) -> None:
        """Print the line."""
        del elapsed
        reward = "-" if score.reward is None else f"{score.reward:z.4f}"
        reason = "" if score.status == "valid" else f" {brief(score.message)}"
        seconds = time.monotonic() - self._began
        print_progress(f"[{seconds:6.1f} s] {self._task}: {name}: {score.status} {reward}{reason}")
