"""Compare the modelled times of profile ``cpu`` with times measured on a GPU, on several implementations.

``compare.py score --profile cpu OUT.json`` scores each and keeps the times, ``--profile gpu`` does so on a GPU;
``compare.py show MODELLED.json MEASURED.json [--plot FILE.svg]`` prints a table. ``docs/tasks/triton_cumsum.md`` shows
the outcome; its data lie in ``docs/tasks/triton_cumsum/``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.errors import ReBenchError
from re_bench.runs.score_process import score_submission
from re_bench.task.discovery import Task, open_task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TASK = Path(__file__).parents[1]
IMPLEMENTATIONS = {
    "reference": "reference",
    "look_back": "tools/implementations/look_back",
    "three_pass": "tools/implementations/three_pass",
    "baseline": "baseline",
    "int64_cumsum": "tools/implementations/int64_cumsum",
    "one_program": "cheats/one_program",
}


def score(profile: str) -> dict[str, Any]:
    """Score each implementation in a profile and return the times in milliseconds with their circumstances.

    Raises:
        ReBenchError: if one is not valid.
    """
    task = open_task(TASK)
    scores = {name: _score(task, TASK / folder, profile) for name, folder in IMPLEMENTATIONS.items()}
    details = next(iter(scores.values())).details
    return {
        "profile": profile,
        "hardware": details["hardware"],
        "versions": details.get("versions", {}),
        "driver": details.get("driver"),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "milliseconds": {name: _milliseconds(score.details) for name, score in scores.items()},
    }


def _score(task: Task, folder: Path, profile: str) -> Any:
    with tempfile.TemporaryDirectory(prefix="re-bench-compare-") as directory:
        Path(directory).chmod(0o755)
        shutil.copy(folder / "solution.py", directory)
        score = score_submission(task, Path(directory), profile)
    if score.status != "valid":
        raise ReBenchError(f"{folder.name} is {score.status}: {score.message}")
    return score


def _milliseconds(details: Mapping[str, Any]) -> float:
    return float(details["times"]["submission"]["milliseconds"] if "times" in details else details["milliseconds"])


def markdown(modelled: Mapping[str, float], measured: Mapping[str, float]) -> str:
    """Return a Markdown table of the times in milliseconds, the fastest first."""
    lines = ["| solution | modelled ms | measured ms | measured/modelled |", "| --- | --- | --- | --- |"]
    for name, ms in sorted(measured.items(), key=lambda item: item[1]):
        times = f"{modelled[name]:.3f} | {ms:.3f} | {ms / modelled[name]:.2f}"
        lines.append(f"| `{IMPLEMENTATIONS[name]}` | {times} |")
    return "\n".join(lines)


def summary(modelled: Mapping[str, float], measured: Mapping[str, float]) -> str:
    """Return the worst ratio, the larger over the smaller time, and Spearman's rank correlation, in words."""
    ratios = {name: max(ms / modelled[name], modelled[name] / ms) for name, ms in measured.items()}
    worst = max(ratios, key=lambda name: ratios[name])
    names = list(measured)
    ranks = (_ranks([times[name] for name in names]) for times in (modelled, measured))
    return f"worst ratio {ratios[worst]:.2f} (`{worst}`), rank correlation {statistics.correlation(*ranks):.2f}"


def _ranks(values: Sequence[float]) -> list[int]:
    ordered = sorted(values)
    return [ordered.index(value) for value in values]


def plot(modelled: Mapping[str, float], measured: Mapping[str, float], path: Path) -> None:
    """Draw measured over modelled times, both logarithmic; needs matplotlib."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only who draws needs it

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    ends = [min(modelled.values()) / 2, max(measured.values()) * 2]
    axes.loglog(ends, ends, color="grey", linewidth=1, label="equal")
    axes.fill_between(
        ends, [end / 1.5 for end in ends], [end * 1.5 for end in ends], color="grey", alpha=0.15, label="within 1.5"
    )
    axes.loglog([modelled[name] for name in measured], list(measured.values()), "o")
    for name, ms in measured.items():
        axes.annotate(name, (modelled[name], ms), xytext=(6, -10), textcoords="offset points")
    axes.set(xlabel="modelled, ms", ylabel="measured, ms", title="triton_cumsum, 100,000,000 elements")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare modelled times with measured ones.")
    commands = parser.add_subparsers(dest="command", required=True)
    scoring = commands.add_parser("score", help="score the implementations and keep their times")
    scoring.add_argument("--profile", choices=("cpu", "gpu"), required=True)
    scoring.add_argument("out", type=Path)
    showing = commands.add_parser("show", help="print the table of two such files")
    showing.add_argument("modelled", type=Path)
    showing.add_argument("measured", type=Path)
    showing.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.command == "score":
        options.out.write_text(json.dumps(score(options.profile), indent=2) + "\n", encoding="utf-8")
        return
    modelled, measured = (
        json.loads(path.read_text(encoding="utf-8"))["milliseconds"] for path in (options.modelled, options.measured)
    )
    print(markdown(modelled, measured))
    print(summary(modelled, measured))
    if options.plot:
        plot(modelled, measured, options.plot)


if __name__ == "__main__":
    main()
