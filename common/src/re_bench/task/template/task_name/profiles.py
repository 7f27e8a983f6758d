"""The sizes of the task: one entry for each profile of ``task.toml``, which ``score.py`` reads.

``instructions.md.j2`` takes the numbers that agents read from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """One profile."""

    points: int
    """Points that agents have."""
    held_out: int
    """Points that no agent has."""
    noise: float
    """The standard deviation of the noise in the points that agents have."""
    fit_s: float
    """Seconds that ``fit`` may take."""
    predict_s: float
    """Seconds that the predictions may take, all together."""


# CHANGE ME: what a small machine, a GPU and the original data are to your task.
PROFILES = {
    "cpu": Size(points=200, held_out=500, noise=0.1, fit_s=12, predict_s=15),
    "gpu": Size(points=1000, held_out=2000, noise=0.1, fit_s=12, predict_s=15),
    "paper": Size(points=500, held_out=1000, noise=0.1, fit_s=12, predict_s=15),
}
