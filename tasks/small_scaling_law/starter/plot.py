"""Plot the experiments: ``python plot.py [FILE.png]``; needs matplotlib.

The left plot shows the learning curves, the right plot the final loss over the width, with one line per budget.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Plot the results in ``runs``, and save the figure."""
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ModuleNotFoundError:
        sys.exit("plot.py needs matplotlib; runs/*.json have the curves as numbers")
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    runs = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((HERE / "runs").glob("*.json"))]
    if not runs:
        sys.exit("there are no experiments yet; run: python train.py")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    budgets = defaultdict(list)
    for run in runs:
        if run["curve"]:
            left.plot(*zip(*run["curve"], strict=True), label=f"{run['n_embd']} wide")
        if run["loss"] is not None:
            budgets[f"{run['flops']:.1g}"].append((run["n_embd"], run["loss"]))
    for budget, points in sorted(budgets.items(), key=lambda item: float(item[0])):
        right.plot(*zip(*sorted(points), strict=True), "o-", label=f"{budget} FLOPs")
    left.set(xscale="log", xlabel="step", ylabel="training loss")
    right.set(xscale="log", xlabel="n_embd", ylabel="final loss")
    for axes in (left, right):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small")
    target = sys.argv[1] if len(sys.argv) > 1 else "experiments.png"
    figure.tight_layout()
    figure.savefig(target)
    print(f"saved {target}")


if __name__ == "__main__":
    main()
