"""Draw the pictures in the README and the docs: ``python docs/site/pictures.py [--validations JSON ...]``.

``--validations`` takes output files of ``re-bench validate --json`` and saves the drawn values to
``docs/pictures/validation.json``, with today's date and the installed versions. The pictures are drawn from that file,
from ``docs/pictures/session.txt``, and from the tasks' anchors and records.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ladder import draw_ladder
from matplotlib.figure import Figure
from paper import ACCENT, BAD, GOOD, GRID, INK, MUTED, roomy, save, styled
from terminal import draw_session

from re_bench.cli.science import rows_of
from re_bench.data.provenance import hardware, versions
from re_bench.task.discovery import open_task

if TYPE_CHECKING:
    from collections.abc import Sequence

TOP = Path(__file__).parents[2]
PICTURES = TOP / "docs" / "pictures"
_KEPT = PICTURES / "validation.json"
_LOWEST, _HIGHEST = -1.5, 1.3
"""Range of the reward axis in ``idea.svg``; lower rewards are drawn at the lower end, labelled "≤ -1.5"."""
_REFUSED_AT = -2.05
_KEY = (
    ("baseline", "o", ACCENT),
    ("reference", "o", GOOD),
    ("cheats that are valid, and no better than the solution they are derived from", "x", BAD),
)


def main() -> None:
    """Draw all pictures; with ``--validations``, save new values first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--validations", metavar="JSON", type=Path, nargs="+", help="from re-bench validate --json")
    options = parser.parse_args()
    if options.validations:
        _KEPT.write_text(json.dumps(kept(options.validations), indent=1) + "\n", encoding="utf-8")
    for name, svg in pictures().items():
        (PICTURES / name).write_text(svg, encoding="utf-8")


def pictures() -> dict[str, str]:
    """Return all pictures as SVG, by file name."""
    drawn = {"idea.svg": draw_idea(json.loads(_KEPT.read_text(encoding="utf-8")))}
    session = PICTURES / "session.txt"
    if session.exists():
        drawn["session.svg"] = draw_session(session.read_text(encoding="utf-8"))
    for path in sorted(TOP.glob("tasks/*/records.toml")):
        drawn[f"{path.parent.name}.svg"] = draw_ladder(list(rows_of(open_task(path.parent))))
    return drawn


def kept(files: Sequence[Path]) -> dict[str, Any]:
    """Return the values to draw from validations: the status and mean reward of each solution, and their origin."""
    reports = [report for file in files for report in json.loads(file.read_text(encoding="utf-8"))["reports"]]
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "profile": reports[0]["profile"],
        "hardware": hardware(),
        "versions": versions(),
        "tasks": {report["task"]: [_solution(row) for row in report["rows"]] for report in reports},
    }


def _solution(row: dict[str, Any]) -> dict[str, Any]:
    rewards = [score["reward"] for score in row["scores"] if score["reward"] is not None]
    mean = round(sum(rewards) / len(rewards), 4) if rewards else None
    return {"solution": row["variant"], "status": row["scores"][0]["status"], "reward": mean}


def draw_idea(data: dict[str, Any]) -> str:
    """Return the README's picture: the rewards of each task's solutions, and the number of refused cheats."""
    with styled():
        figure = Figure(figsize=(8.4, 0.5 * len(data["tasks"]) + 1.5), layout=roomy())
        axes = figure.add_subplot()
        for height, (task, solutions) in enumerate(reversed(data["tasks"].items())):
            _draw_task(axes, height, task, solutions)
        for reward, text in ((0, "baseline: 0"), (1, "reference: 1")):
            axes.axvline(reward, color=GRID, linewidth=1.2, zorder=0)
            axes.text(reward, len(data["tasks"]) - 0.4, text, ha="center", color=INK, fontweight="bold")
        axes.text(_REFUSED_AT, len(data["tasks"]) - 0.4, "cheats refused", ha="center", color=BAD, fontweight="bold")
        axes.set_xlim(_REFUSED_AT - 0.45, _HIGHEST + 0.1)
        axes.set_ylim(-0.6, len(data["tasks"]) - 0.1)
        axes.set_xticks([-1.5, -1, -0.5, 0, 0.5, 1], ["≤ -1.5", "-1", "-0.5", "0", "0.5", "1"])
        axes.tick_params(length=0)
        axes.set_xlabel("reward = (raw - starting) / (reference - starting)")
        for side in axes.spines.values():
            side.set_visible(False)
        for label, marker, colour in _KEY:
            axes.plot([], [], marker, color=colour, label=label, markersize=7, linestyle="none")
        key = figure.legend(
            loc="outside lower center",
            ncols=len(_KEY),
            frameon=False,
            labelcolor=INK,
            fontsize=8.5,
            title=_origin(data),
        )
        key.get_title().set(color=MUTED, fontsize=7.5)
        return save(figure, "idea", "The scale of rewards", _in_words(data))


def _origin(data: dict[str, Any]) -> str:
    shown = ("python", "torch", "triton")
    versions_ = ", ".join(f"{name} {data['versions'][name]}" for name in shown)
    return f"re-bench validate, profile {data['profile']}, {data['date']}, {data['hardware']}, {versions_}"


def _in_words(data: dict[str, Any]) -> str:
    lines = []
    for task, solutions in data["tasks"].items():
        rewards = {solution["solution"]: solution["reward"] for solution in solutions}
        refused = sum(solution["status"] == "invalid" for solution in solutions)
        cheats = [reward for name, reward in rewards.items() if name.startswith("cheats/") and reward is not None]
        valid = f"the others reach {max(cheats):.2f} at most" if cheats else "no other is valid"
        anchors = f"baseline {rewards['baseline']:.2f}, reference {rewards['reference']:.2f}"
        lines.append(f"{task}: {anchors}, {refused} cheats refused, {valid}")
    return "; ".join(lines)


def _draw_task(axes: Any, height: int, task: str, solutions: list[dict[str, Any]]) -> None:
    cheats = [solution for solution in solutions if solution["solution"].startswith("cheats/")]
    refused = sum(cheat["status"] == "invalid" for cheat in cheats)
    axes.text(_REFUSED_AT, height, str(refused), ha="center", va="center", color=BAD, fontsize=12)
    valid = [max(_LOWEST, cheat["reward"]) for cheat in cheats if cheat["reward"] is not None]
    axes.plot(valid, [height] * len(valid), "x", color=BAD, markersize=7, markeredgewidth=1.6, zorder=3)
    for place, count in Counter(round(reward, 1) for reward in valid).items():
        if count > 1:
            axes.text(place + 0.07, height + 0.1, str(count), color=BAD, fontsize=8)
    for solution in solutions:
        if solution["solution"] in ("baseline", "reference"):
            colour = ACCENT if solution["solution"] == "baseline" else GOOD
            axes.plot(solution["reward"], height, "o", color=colour, markersize=10, zorder=2)
    axes.axhline(height, color=GRID, linewidth=0.6, zorder=0)
    axes.text(_REFUSED_AT - 0.5, height, task, ha="right", va="center", color=INK, family="monospace")
    axes.set_yticks([])


if __name__ == "__main__":
    main()
