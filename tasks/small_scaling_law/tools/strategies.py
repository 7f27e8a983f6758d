"""What cheap strategies get, from a sweep's small runs: ``python tools/strategies.py --profile cpu [--instance N]``.

They see the runs of at most a fiftieth of the target, which is what one experiment may spend. ``--others`` adds answers
made for other instances: their best width and loss.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls  # type: ignore[import-untyped]

from re_bench.data.files import import_file
from re_bench.normalise import normalise
from re_bench.processes import cli_entry_point
from re_bench.task.discovery import open_task
from small_scaling_law.answer import Answer
from small_scaling_law.grading import open_anchors, open_truth, raw_score, runs_file, truth_file
from small_scaling_law.instances import scale_of

if TYPE_CHECKING:
    from small_scaling_law.profiles import Scale

TOOLS = Path(__file__).parent
SMALL = 1 / 50
"""Share of the target that an experiment may spend."""
EXPONENTS = (0.34, 0.28)
"""Of parameters and tokens, as published by Hoffmann et al. (arXiv 2203.15556, approach 3)."""
GUESSES = 1000


@dataclass(frozen=True)
class Seen:
    """The small runs of a sweep."""

    scale: Scale
    means: dict[float, dict[int, float]]
    """Mean losses by width, by FLOPs."""

    def best(self, budget: int) -> tuple[float, int, float]:
        """Return FLOPs, best width and its loss of a budget, counted from the smallest."""
        flops = sorted(self.means)[budget]
        width = min(self.means[flops], key=self.means[flops].__getitem__)
        return flops, width, self.means[flops][width]

    def answer(self, width: float, loss: float) -> Answer:
        """Return the answer of a width on the target's budget."""
        n_embd = max(1, round(width / self.scale.n_head)) * self.scale.n_head
        return Answer(n_embd, self.scale.steps(n_embd, self.scale.target_flops), loss)


def seen(profile: str, instance: int) -> Seen:
    """Return the small runs of an instance's sweep."""
    losses: dict[float, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    scale = scale_of(profile, instance)
    for run in import_file(TOOLS / "fit.py", "fit").read_runs(runs_file(profile, instance)):
        if run["share"] <= SMALL and run["loss"] is not None:
            losses[run["share"] * scale.target_flops][run["n_embd"]].append(run["loss"])
    means = {flops: {width: statistics.fmean(of) for width, of in widths.items()} for flops, widths in losses.items()}
    return Seen(scale, means)


def strategies(runs: Seen) -> dict[str, Answer]:
    """Return the answers of cheap strategies, by what they do."""
    (before, width_before, loss_before), (last, width, loss) = runs.best(-2), runs.best(-1)
    further = math.log(runs.scale.target_flops / last)
    power, width_power = (math.log(new / old) / math.log(last / before)
                          for new, old in ((loss, loss_before), (width, width_before)))  # fmt: skip
    grown = width * math.exp(further / 4)
    return {
        "no extrapolation": runs.answer(width, loss),
        "width by the fourth root of compute, loss not extrapolated": runs.answer(grown, loss),
        "power laws through the best of two budgets": runs.answer(
            width * math.exp(width_power * further), loss * math.exp(power * further)
        ),
        "width by the fourth root, loss by a power law of two budgets": runs.answer(
            grown, loss * math.exp(power * further)
        ),
        "published exponents, fitted floor and factors": hoffmann(runs),
    }


def hoffmann(runs: Seen) -> Answer:
    """Return the best answer by E + A / N^0.34 + B / D^0.28 with E, A and B, at least 0, fitted to all small runs."""
    scale = runs.scale

    def terms(width: int, flops: float) -> list[float]:
        parameters = 12 * scale.n_layer * width**2
        return [1.0, parameters ** -EXPONENTS[0], (flops / (6 * parameters)) ** -EXPONENTS[1]]

    points = [(terms(width, flops), loss) for flops, widths in runs.means.items() for width, loss in widths.items()]
    factors, _residual = nnls(*map(np.array, zip(*points, strict=True)))
    losses = {
        width: float(np.dot(terms(width, scale.target_flops), factors))
        for width in range(scale.n_head, 4096, scale.n_head)
    }
    width = min(losses, key=losses.__getitem__)
    return runs.answer(width, losses[width])


def guesses(runs: Seen) -> list[Answer]:
    """Return random answers: widths up to four times those that were best, losses up to the lowest measured one."""
    _flops, width, loss = runs.best(-1)
    draw = np.random.default_rng(0)
    return [
        runs.answer(width * math.exp(draw.uniform(0, math.log(4))), draw.uniform(0, loss)) for _guess in range(GUESSES)
    ]


def main() -> None:
    """Read the command line and print a table."""
    parser = argparse.ArgumentParser(description="What cheap strategies get, from the sweep's own small runs.")
    parser.add_argument("--profile", choices=("cpu", "gpu"), required=True)
    parser.add_argument("--instance", type=int, default=0, help="which one of the profile (default: 0)")
    parser.add_argument("--others", type=int, nargs="*", default=[], help="instances whose best answers are tried here")
    options = parser.parse_args()
    with cli_entry_point("strategies.py"):
        profile, instance = options.profile, options.instance
        truth, runs = open_truth(profile, instance), seen(profile, instance)
        anchors: Any = open_anchors(profile, instance) or open_task(TOOLS.parent).profile(profile).anchors

        def reward(answer: Answer) -> float:
            return normalise(raw_score(truth, answer), anchors.starting, anchors.reference)

        answers = {"starting answer": Answer(*runs.scale.default)} | strategies(runs)
        for other in options.others:
            best = open_truth(profile, other).best
            answers[f"the best answer of instance {other}"] = runs.answer(best.n_embd, best.loss)
        answers["all known"] = Answer(truth.best.n_embd, truth.best.max_iters, truth.best.loss)
        print(f"| {truth_file(profile, instance).stem} | n_embd, steps, prediction | raw | reward |")
        print("| --- | --- | --- | --- |")
        for name, answer in answers.items():
            numbers = f"{answer.n_embd}, {answer.max_iters}, {answer.loss_prediction:.3f}"
            print(f"| {name} | {numbers} | {raw_score(truth, answer):.3f} | {reward(answer):.2f} |")
        rewards = sorted(map(reward, guesses(runs)))
        print(f"| {GUESSES} random guesses, mean; best tenth from | | | {statistics.fmean(rewards):.2f}; "
              f"{rewards[-GUESSES // 10]:.2f} |")  # fmt: skip


if __name__ == "__main__":
    main()
