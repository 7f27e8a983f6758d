"""Fit a ground truth to a sweep.

The ground truth is rejected if the best width is at the edge of the sweep or not clearly better than widths further
away, or if more compute does not lower the loss.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import least_squares  # type: ignore[import-untyped]

from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError
from re_bench.task import CANARY
from small_scaling_law.grading import TERMS, Surface, runs_file
from small_scaling_law.profiles import MAX_SHARE, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    Runs = Sequence[dict[str, Any]]

OUTLIER = 0.05
"""Residuals above this many nats count less than quadratically."""
NEAREST = 0.5
"""The surface is fitted to runs with at least this share of the target's FLOPs."""
MARGIN = 3.0
"""The best width must beat the widths two steps away by this many times the spread between seeds."""


def fitted(runs: Runs, scale: Scale, name: str) -> tuple[Surface, dict[str, Any]]:
    """Return the surface fitted to a sweep's runs, and figures on the quality of the fit.

    Runs that diverged or are far from the target are ignored. ``name`` is the origin of the ground truth, in one line.

    Raises:
        ReBenchError: if there are fewer than two runs per coefficient.
    """
    near = [run for run in runs if run["share"] >= NEAREST]
    good = [run for run in near if run["loss"] is not None]
    losses = np.array([run["loss"] for run in good])
    if len(good) < 2 * len(TERMS):
        raise ReBenchError(f"{len(good)} runs are too few for {len(TERMS)} coefficients; sweep first")
    widths = sorted({run["n_embd"] for run in good})
    shape = Surface(
        name=name,
        coefficients=(),
        centre=math.sqrt(widths[0] * widths[-1]),
        widths=(widths[0], widths[-1]),
        target_flops=scale.target_flops,
        flops_of_a_step=scale.flops(1, 1),
        multiple_of=scale.n_head,
        most_share=MAX_SHARE,
    )

    def residuals(coefficients: Sequence[float]) -> Any:
        truth = replace(shape, coefficients=tuple(map(float, coefficients)))
        return losses - [truth.loss(run["n_embd"], run["max_iters"]) for run in good]

    best = least_squares(residuals, [0.0] * len(TERMS), loss="soft_l1", f_scale=OUTLIER)
    remainder = residuals(best.x)
    quality = {
        "residual_rms": float(np.sqrt(np.mean(remainder**2))),
        "residual_max": float(np.abs(remainder).max()),
        "residuals": [
            [run["n_embd"], run["max_iters"], run["seed"], round(float(residual), 5)]
            for run, residual in zip(good, remainder, strict=True)
        ],
        "seed_spread": seed_spread(good),
        "diverged": [[run["n_embd"], run["max_iters"], run["seed"]] for run in near if run["loss"] is None],
    }
    return replace(shape, coefficients=tuple(map(float, best.x))), quality


def seed_spread(runs: Runs) -> float | None:
    """Return the pooled standard deviation between runs that differ only in the seed; None without such runs."""
    by_run = defaultdict(list)
    for run in runs:
        by_run[run["n_embd"], run["max_iters"]].append(run["loss"])
    variances = [statistics.variance(losses) for losses in by_run.values() if len(losses) > 1]
    return math.sqrt(statistics.fmean(variances)) if variances else None


def problems(runs: Runs, surface: Surface) -> list[str]:
    """Return the reasons for rejecting the ground truth, one line each.

    At every budget, the width with the best mean loss must be strictly inside the sweep, and must beat the widths two
    steps away by ``MARGIN`` times the spread between seeds. More compute must lower the loss at the best width, and
    must not raise the loss at the sweep's edges.
    """
    budgets: dict[float, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if run["loss"] is not None:
            budgets[run["share"]].append(run)
    lines = [line for share, swept in sorted(budgets.items()) for line in problems_of_budget(share, swept)]
    for width in (*surface.widths, surface.best.n_embd):
        steps = surface.target_flops / (surface.flops_of_a_step * width**2)
        change = surface.loss(width, round(steps)) - surface.loss(width, max(1, round(steps / 2)))
        if change > 0 or (change == 0 and width == surface.best.n_embd):
            lines.append(f"at width {width} more compute does not lower the loss")
    return lines


def problems_of_budget(share: float, runs: Runs) -> list[str]:
    """Return the reasons for rejection at one budget, one line each."""
    spread = seed_spread(runs)
    if spread is None:
        return [f"at {share:g} of the target no run has a second seed, so the spread is unknown"]
    losses = defaultdict(list)
    for run in runs:
        losses[run["n_embd"]].append(run["loss"])
    widths = sorted(losses)
    means = [statistics.fmean(losses[width]) for width in widths]
    best = means.index(min(means))
    if best in (0, len(widths) - 1):
        return [f"at {share:g} of the target the best width, {widths[best]}, is at the edge of the sweep"]
    return [
        f"at {share:g} of the target width {widths[best]} beats {widths[other]} by {means[other] - means[best]:.3f}, "
        f"less than {MARGIN:g} times the seed spread of {spread:.3f}"
        for other in (best - 2, best + 2)
        if 0 <= other < len(widths) and means[other] - means[best] < MARGIN * spread
    ]


def write_fit(runs: Runs, scale: Scale, path: Path) -> Surface:
    """Fit the ground truth to runs, and write it to the file ``path``, next to the file of the runs.

    Raises:
        ReBenchError: if the ground truth is rejected; nothing is written then.
    """
    surface, quality = fitted(runs, scale, f"our sweep of {len(runs)} runs around {scale.target_flops:g} FLOPs")
    if reasons := problems(runs, surface):
        raise ReBenchError("the ground truth is rejected:\n" + "\n".join(reasons))
    source = runs_file(path)
    origin = {"canary": CANARY, "runs": {"file": source.name, "sha256": sha256_of(source)}}
    record = {"kind": "surface", **asdict(surface), "best": vars(surface.best), **quality, **origin}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"best: {surface.best}; residuals {quality['residual_rms']:.4f} root mean square")
    return surface
