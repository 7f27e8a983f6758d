"""Draw the picture of a task: the rewards of the methods in its ``records.toml``, with one panel per profile."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from paper import ACCENT, GOOD, GRID, INK, MUTED, roomy, save, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLOURS = {"baseline": ACCENT, "reference": GOOD, "best": GOOD, "ceiling": INK, "simple": MUTED}
_WORDS = {"baseline": "baseline: ", "reference": "reference: ", "best": "best: ", "ceiling": "ceiling: ", "simple": ""}
_TASK, _PROFILE, _KIND, _METHOD, _REWARD = 0, 1, 2, 3, 6
"""Columns of :func:`re_bench.cli.science.rows_of`."""
_CHARACTERS = 74
_ROW_INCHES = 0.42
_WIDTH_INCHES = 6.2


def draw_ladder(rows: Sequence[Sequence[str]]) -> str:
    """Return a task's picture as SVG, drawn from the task's rows in ``docs/science.md`` that have a reward."""
    rows = [row for row in rows if row[_REWARD]]
    profiles = list(dict.fromkeys(row[_PROFILE] for row in rows))
    panels = [[row for row in rows if row[_PROFILE] == profile] for profile in profiles]
    with styled():
        heights = [len(panel) * _ROW_INCHES + 0.75 for panel in panels]
        figure = Figure(figsize=(_WIDTH_INCHES, sum(heights)), layout=roomy())
        every = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
        for axes, profile, panel in zip(every, profiles, panels, strict=True):
            _draw(axes, profile, panel[::-1])  # first row on top, since a row may refer to the row above it
        task = rows[0][_TASK]
        text = "; ".join(f"{row[_PROFILE]}: {_WORDS[row[_KIND]]}{row[_METHOD]} {row[_REWARD]}" for row in rows)
        return save(figure, task.replace("_", "-"), f"What methods reach at {task}", text)


def _draw(axes: Any, profile: str, rows: Sequence[Sequence[str]]) -> None:
    rewards = [float(row[_REWARD]) for row in rows]
    low, high = min(0.0, *rewards), max(1.0, *rewards)
    for height, (row, reward) in enumerate(zip(rows, rewards, strict=True)):
        colour = _COLOURS[row[_KIND]]
        method = textwrap.shorten(_WORDS[row[_KIND]] + row[_METHOD].replace("`", ""), _CHARACTERS, placeholder=" …")
        axes.hlines(height, low, high, color=GRID, linewidth=0.7, zorder=0)
        axes.hlines(height, 0, reward, color=colour, linewidth=2.2)
        axes.plot(reward, height, "D" if row[_KIND] == "ceiling" else "o", color=colour, markersize=6)
        axes.text(low, height + 0.24, method, color=INK, fontsize=8.5)
        axes.text(high + 0.12 * (high - low), height, f"{reward:.2f}", color=colour, ha="right", va="center")
    for reward in (0, 1):
        axes.axvline(reward, color=GRID, linewidth=1, zorder=0)
    axes.set_ylim(-0.5, len(rows) - 0.1)
    axes.set_xlim(low - 0.02 * (high - low), high + 0.13 * (high - low))
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.set_title(f"profile {profile}: reward", loc="left", color=INK, fontsize=10, fontweight="bold")
    for side in axes.spines.values():
        side.set_visible(False)
