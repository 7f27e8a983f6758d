"""Make one run at each of three budgets with the textbook's width, and extrapolate the loss by a power law."""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

import json
import math
import os
from pathlib import Path

import numpy as np
from scales import chosen
from train import experiment

SEED = int(os.environ.get("RE_BENCH_SEED", "0"))
HERE = Path(__file__).parent
SCALE = chosen(HERE)


def textbook_width(flops):
    """Return the valid width nearest to the best one by Chinchilla's rule of 20 tokens per parameter."""
    width = math.sqrt(math.sqrt(flops / 120) / (12 * SCALE.n_layer))
    return max(1, round(width / SCALE.n_head)) * SCALE.n_head


budgets, losses = SCALE.experiments.run_flops * np.array([0.25, 0.5, 1.0]), []
for flops in budgets:
    width = textbook_width(flops)
    result = experiment(width, int(flops // SCALE.flops(width, 1)), SEED)
    losses.append(result["loss"])
    print(f"{flops:.2g} FLOPs, width {width}: {result['loss']:.4f}, {result['seconds']:.0f} s", flush=True)

power, start = np.polyfit(np.log(budgets / SCALE.target_flops), np.log(losses), 1)
width, loss = textbook_width(SCALE.target_flops), math.exp(start)
steps = SCALE.steps(width, SCALE.target_flops)
answer = {"n_embd": width, "max_iters": steps, "loss_prediction": round(loss, 4)}
(HERE / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
