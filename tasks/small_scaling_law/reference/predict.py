# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""The reference solution: run experiments at three budgets, fit the law of ``law.py``, and write the answer.

At each budget, train widths around a guess, with two seeds each, and add widths until there is a worse width on both
sides of the best one. All runs are charged to the ledger. Profile ``paper``, which has no experiments, uses the
published law of Hoffmann et al. (arXiv 2203.15556). ``RE_BENCH_SEED`` selects other seeds.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from law import nearest, predict
from scales import chosen

HERE = Path(__file__).parent
SCALE = chosen(HERE)
SHARES = (0.25, 0.5, 1.0)
"""Budgets, as shares of the maximum FLOPs of one run; smaller runs hardly train."""
SEEDS = 2
"""Runs per width and budget."""
FIRST_SEED = SEEDS * int(os.environ.get("RE_BENCH_SEED", "0")) + 1
RATIO = 1.4
"""Ratio of neighbouring widths, before rounding to multiples of the number of heads."""
MAX_WIDTHS = 7
"""Maximum number of widths per budget."""


def best_guess(flops):
    """Return the best width for a budget according to Chinchilla's rule of 20 tokens per parameter."""
    return math.sqrt(math.sqrt(flops / 120) / (12 * SCALE.n_layer))


def beside(width, direction):
    """Return the next valid width above ``width`` (``direction`` 1) or below it (-1)."""
    found = nearest(width * RATIO**direction, SCALE)
    return found if found != width else width + direction * SCALE.n_head


def one_run(job):
    """Run one experiment with one thread."""
    import torch  # noqa: PLC0415 - the main process does not need torch
    from train import experiment  # noqa: PLC0415

    torch.set_num_threads(1)
    return experiment(*job)


def explore(pool, flops, guess):
    """Return the losses by width at one budget, with a worse width on both sides of the best one if possible."""
    losses, tried = defaultdict(list), set()
    middle = nearest(guess, SCALE)
    wanted = sorted({middle, beside(middle, 1), max(SCALE.n_head, beside(middle, -1))})
    while wanted:
        tried.update(wanted)
        jobs = [
            (width, int(flops // SCALE.flops(width, 1)), seed)
            for width in wanted
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)
        ]
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
        if len(tried) >= MAX_WIDTHS or not tried.isdisjoint(wanted):
            break
    return {width: found for width, found in losses.items() if np.isfinite(found).all()}


def published_law():
    """Return the answer of Hoffmann et al.: 20 tokens per parameter, and the loss of their approach 3."""
    width = nearest(best_guess(SCALE.target_flops), SCALE)
    steps = SCALE.steps(width, SCALE.target_flops)
    parameters, tokens = 12 * SCALE.n_layer * width**2, SCALE.tokens(steps)
    loss = 1.69 + 406.4 / parameters**0.34 + 410.7 / tokens**0.28
    return {"n_embd": width, "max_iters": steps, "loss_prediction": round(loss, 4)}


def workers():
    """Return a process pool, or a pool of one thread in sandboxes without semaphores, such as ``landlock``."""
    try:
        return ProcessPoolExecutor(min(4, len(os.sched_getaffinity(0))), get_context("spawn"))
    except PermissionError:
        return ThreadPoolExecutor(1)


def experiments():
    """Run the experiments, and return the losses by width for each budget in FLOPs."""
    found, guess, before = {}, 0.0, 0.0
    with workers() as pool:
        for share in SHARES:
            flops = share * SCALE.experiments.run_flops
            # Each budget starts from the previous best width, scaled by Chinchilla's rule.
            start = guess * best_guess(flops) / best_guess(before) if found else best_guess(flops)
            losses = found[flops] = explore(pool, flops, start)
            guess, before = min(losses, key=lambda width, losses=losses: np.mean(losses[width])), flops
    return found


def main():
    """Run the experiments, fit the law, and write the answer and a report."""
    report = {}
    if SCALE.experiments is None:
        answer = published_law()
    else:
        losses = experiments()
        answer, report = predict(losses, SCALE)
        report["losses"] = losses
    (HERE / "answer.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    (HERE / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(answer), {key: value for key, value in report.items() if key != "losses"})


if __name__ == "__main__":
    sys.exit(main())
