"""The sizes of the task, one entry for each profile of ``task.toml``; ``instructions.md.j2`` uses these numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """The settings of a profile."""

    letters: int
    """Length of the text."""
    tolerance: float
    """Largest allowed difference of a weight."""
    rounds: int
    """Number of rounds; in each round, baseline, reference and submission run once."""
    max_spread: float
    """Largest allowed width of the intervals of baseline and reference, relative to their median times."""


# CHANGE ME: the baseline should take at least ten times as long as Python needs to start (about 0.05 s).
PROFILES = {"cpu": Size(letters=10_000, tolerance=1e-6, rounds=7, max_spread=0.5)}
