"""Draw a report of the reference over the truth: ``python tools/plots.py report.json FILE.svg``; needs matplotlib.

Left the reference's experiments with their parabolas, and the target's curve as the truth has it; right the lowest
losses and the best widths over compute, and where the law leads.
"""

from __future__ import annotations

import argparse
import json
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from small_scaling_law.grading import open_truth
from small_scaling_law.profiles import SCALES, Scale

LAW = runpy.run_path(str(Path(__file__).parents[1] / "reference" / "law.py"))


def main() -> None:
    """Read the command line and draw."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "re-bench", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of what draws

    parser = argparse.ArgumentParser(description="Draw a report of the reference over the truth.")
    parser.add_argument("report", type=Path, help="what the reference wrote")
    parser.add_argument("out", type=Path)
    parser.add_argument("--profile", default="cpu")
    options = parser.parse_args()
    report = json.loads(options.report.read_text(encoding="utf-8"))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.5))
    curves(left, report, options.profile)
    powers(middle, right, report, options.profile)
    figure.tight_layout()
    figure.savefig(options.out, metadata={"Date": None})


def at_target(truth: Any, scale: Scale) -> dict[int, float]:
    """Return the losses by width at the target's FLOPs, over the widths of the sweep."""
    narrowest, widest = truth.widths
    widths = range(narrowest, widest + 1, scale.n_head)
    return {width: truth.loss(width, scale.steps(width, scale.target_flops)) for width in widths}


def curves(axes: Any, report: dict[str, Any], profile: str) -> None:
    """Draw iso-FLOP curves."""
    truth, scale = open_truth(profile), SCALES[profile]
    for flops, by_width in report["losses"].items():
        losses = {int(width): values for width, values in by_width.items()}
        points = LAW["near_best"](losses)
        logs, values = np.array(points).T
        x = np.linspace(logs.min() - 0.1, logs.max() + 0.1)
        (line,) = axes.plot(np.exp(x), np.polyval(np.polyfit(logs, values, 2), x), "-", lw=1)
        measured = [(width, loss) for width, values in losses.items() for loss in values]
        axes.plot(*zip(*measured, strict=True), "o", ms=4, color=line.get_color(), label=f"{float(flops):g} FLOPs")
    target = at_target(truth, scale)
    axes.plot(list(target), list(target.values()), "k-", label=f"truth, {scale.target_flops:g} FLOPs")
    axes.set(xscale="log", xlabel="n_embd", ylabel="loss, nats a byte")
    axes.legend(fontsize="small")


def powers(losses: Any, widths: Any, report: dict[str, Any], profile: str) -> None:
    """Draw the lowest losses and best widths over compute."""
    truth, scale = open_truth(profile), SCALES[profile]
    budgets = {float(flops): {int(width): values for width, values in by_width.items()}
               for flops, by_width in report["losses"].items()}  # fmt: skip
    points = {flops: LAW["near_best"](losses_of) for flops, losses_of in budgets.items()}
    valleys = np.array([LAW["parabola"](near)[0] for near in points.values()])
    width, loss, _measured, power, floor = LAW["extrapolate"](points, scale.target_flops)
    flops = np.geomspace(min(budgets), scale.target_flops)
    true_losses = at_target(truth, scale)
    best = min(true_losses, key=lambda width: true_losses[width])
    for axes, lowest, law, truth_at_target, name in (
        (losses, valleys[:, 1], floor + (loss - floor) * (flops / scale.target_flops) ** power,
         true_losses[best], "loss_prediction"),
        (widths, np.exp(valleys[:, 0]), width * (flops / scale.target_flops) ** LAW["WIDTH_POWER"], best, "n_embd"),
    ):  # fmt: skip
        axes.plot(list(budgets), lowest, "o", label="lowest of each parabola")
        axes.plot(flops, law, "-", lw=1, label="law")
        low, middle, high = report[name]["percentiles_5_50_95"]
        axes.errorbar([scale.target_flops], [middle], [[middle - low], [high - middle]], fmt="s", ms=4, capsize=3,
                      label="prediction, 5 to 95 %")  # fmt: skip
        axes.plot([scale.target_flops], [truth_at_target], "k*", ms=10, label="truth")
        axes.set(xscale="log", yscale="log", xlabel="FLOPs", ylabel=name)
        axes.yaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(mpl.ticker.StrMethodFormatter("{x:g}"))
        axes.legend(fontsize="small")


if __name__ == "__main__":
    main()
