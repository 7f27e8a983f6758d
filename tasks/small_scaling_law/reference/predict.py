# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""The reference: iso-FLOP parabolas at a few budgets, and power laws through their lowest points.

1. At each of three budgets, widths around a guess are trained, a few seeds each, and more on a side until the best
   width has a worse one on either side. A parabola in ln(width) gives the best width and its loss (Hoffmann et al.,
   arXiv 2203.15556, approach 2).
2. The best width grows as a power of compute, and so falls the loss: straight lines in logarithms. An irreducible loss
   cannot be told from three budgets within a decade, and is left out. The largest budget, the nearest to the target,
   counts most.
3. The fit is repeated with losses drawn again, as far off as they are from their parabolas; the spread of what these
   fits predict is reported. Only the point estimate is handed in.

All runs go through the ledger. Where there are no experiments (profile ``paper``), the published law of Hoffmann et al.
is all that is left.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scales import SCALES

HERE = Path(__file__).parent
SCALE = SCALES[json.loads((HERE / "profile.json").read_text(encoding="utf-8"))["profile"]]
SHARES = (0.1, 0.3, 1.0)
"""Of the FLOPs that one run may spend; the weight of a budget in the power laws is its share too."""
SEEDS = (1, 2)
RATIO = 1.4
"""Between neighbouring widths, as far as multiples of the heads allow."""
MOST_WIDTHS = 7
"""Of one budget."""
DRAWS = 300
NOISE = 0.02
"""The least standard deviation that a loss is believed to have, in nats."""


def best_guess(flops):
    """Return the width that Chinchilla's rule of 20 tokens a parameter gives for a budget."""
    return math.sqrt(math.sqrt(flops / 120) / (12 * SCALE.n_layer))


def nearest(width):
    """Return the nearest width that a model can have."""
    return max(1, round(width / SCALE.n_head)) * SCALE.n_head


def beside(width, direction):
    """Return the next width on one side, which is another one."""
    found = nearest(width * RATIO**direction)
    return found if found != width else width + direction * SCALE.n_head


def one_run(job):
    """Make one experiment in a process of its own, on one thread."""
    import torch  # noqa: PLC0415 - the main process needs none
    from train import experiment  # noqa: PLC0415

    torch.set_num_threads(1)
    return experiment(*job)


def explore(pool, flops, guess):
    """Return the losses by width at one budget, with at least one worse width on either side of the best."""
    losses, tried = defaultdict(list), set()
    middle = nearest(guess)
    wanted = sorted({middle, beside(middle, 1), max(SCALE.n_head, beside(middle, -1))})
    while wanted:
        tried.update(wanted)
        jobs = [(width, int(flops // SCALE.flops(width, 1)), seed) for width in wanted for seed in SEEDS]
        for result in pool.map(one_run, [job for job in jobs if job[1]]):
            loss = result["loss"] if result["loss"] is not None else math.inf
            losses[result["n_embd"]].append(loss)
            print(f"{flops:.2g} FLOPs, width {result['n_embd']}: {loss:.4f}, {result['seconds']:.0f} s", flush=True)
        widths = sorted(losses)
        best = min(widths, key=lambda width: np.mean(losses[width]))
        wanted = []
        if best == widths[-1]:
            wanted = [beside(best, 1)]
        elif best == widths[0] and best > SCALE.n_head:
            wanted = [beside(best, -1)]
        if len(tried) >= MOST_WIDTHS or not tried.isdisjoint(wanted):
            break
    return {width: found for width, found in losses.items() if np.isfinite(found).all()}


def parabola(points):
    """Return the lowest point (ln width, loss) of a parabola through points of both, and the residuals."""
    x, y = np.array(points).T
    curve = np.polyfit(x, y, 2)
    if curve[0] <= 0:  # no valley: the lowest point seen
        lowest = int(np.argmin(y))
        return (x[lowest], y[lowest]), np.zeros(len(y))
    place = min(max(-curve[1] / (2 * curve[0]), x.min()), x.max())
    return (place, float(np.polyval(curve, place))), y - np.polyval(curve, x)


def extrapolate(budgets):
    """Return ln(width), ln(loss) and their exponents at the target, for points by budget."""
    flops = np.log(np.array(list(budgets)) / SCALE.target_flops)
    valleys = np.array([parabola(points)[0] for points in budgets.values()])
    weights = np.sqrt(np.exp(flops))
    width = np.polyfit(flops, valleys[:, 0], 1, w=weights)
    loss = np.polyfit(flops, np.log(valleys[:, 1]), 1, w=weights)
    return width[1], loss[1], width[0], loss[0]


def predict(losses_of):
    """Return the answer and a report of how sure it is, from losses by width by budget."""
    budgets = {
        flops: [(math.log(width), loss) for width, found in losses.items() for loss in found]
        for flops, losses in losses_of.items()
    }
    left = np.concatenate([parabola(points)[1] for points in budgets.values()])
    noise = max(NOISE, float(left.std()))
    draw = np.random.default_rng(0)
    fits = [
        extrapolate({c: [(x, y + draw.normal(0, noise)) for x, y in points] for c, points in budgets.items()})
        for _ in range(DRAWS)
    ]
    log_width, log_loss, width_power, loss_power = extrapolate(budgets)
    width = nearest(math.exp(log_width))
    answer = {
        "n_embd": width,
        "max_iters": SCALE.steps(width, SCALE.target_flops),
        "loss_prediction": round(math.exp(log_loss), 4),
    }
    spread = {name: np.percentile([math.exp(fit[place]) for fit in fits], [5, 50, 95]).round(3).tolist()
              for place, name in enumerate(("n_embd", "loss_prediction"))}  # fmt: skip
    powers = {"n_embd": round(float(width_power), 4), "loss_prediction": round(float(loss_power), 4)}
    return answer, {"noise": round(noise, 4), "exponents": powers, "percentiles_5_50_95": spread}


def published_law():
    """Return the answer by Hoffmann et al.: 20 tokens a parameter, and the loss of their approach 3."""
    width = nearest(best_guess(SCALE.target_flops))
    steps = SCALE.steps(width, SCALE.target_flops)
    parameters, tokens = 12 * SCALE.n_layer * width**2, SCALE.tokens(steps)
    loss = 1.69 + 406.4 / parameters**0.34 + 410.7 / tokens**0.28
    return {"n_embd": width, "max_iters": steps, "loss_prediction": round(loss, 4)}


def experiments():
    """Return the losses by width by budget, made through the ledger."""
    found, guess, before = {}, 0.0, 0.0
    workers = min(4, len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for share in SHARES:
            flops = share * SCALE.experiments.run_flops
            # Each budget starts where the one before had its best width, grown as in Chinchilla's rule.
            start = guess * best_guess(flops) / best_guess(before) if found else best_guess(flops)
            losses = found[flops] = explore(pool, flops, start)
            guess, before = min(losses, key=lambda width, losses=losses: np.mean(losses[width])), flops
    return found


def main():
    """Experiment, fit, answer."""
    report = {}
    if SCALE.experiments is None:
        answer = published_law()
    else:
        losses = experiments()
        answer, report = predict(losses)
        report["losses"] = losses
    (HERE / "answer.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    (HERE / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(answer), {key: value for key, value in report.items() if key != "losses"})


if __name__ == "__main__":
    sys.exit(main())
