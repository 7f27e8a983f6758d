"""Fit the truth to a sweep: ``python tools/fit.py --profile cpu [--instance N]`` writes ``truth/cpu.json``.

Of two forms, a surface and a law, the one that leaves less becomes the truth.

It refuses a truth that is not sound: where the best width lies at the edge of the sweep, is not clearly better than
widths further away, or more compute does not help.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import least_squares  # type: ignore[import-untyped]

from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point
from small_scaling_law.grading import runs_file, truth_file
from small_scaling_law.instances import scale_of
from small_scaling_law.profiles import MOST_SHARE, SCALES, Scale
from small_scaling_law.truth.law import Law
from small_scaling_law.truth.surface import Surface

if TYPE_CHECKING:
    from collections.abc import Sequence

    from small_scaling_law.truth.swept import Swept

    Runs = Sequence[dict[str, Any]]

FORMS: tuple[type[Swept], ...] = (Surface, Law)
OUTLIER = 0.05
"""Nats from which on a residual counts less than squared."""
NEAREST = 0.5
"""Share of the target from which on a run counts for the surface; smaller ones are there to be extrapolated from."""
MARGIN = 3.0
"""Seed spreads by which the best width beats those two widths away."""
CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"


def best_fitted(runs: Runs, scale: Scale, name: str) -> tuple[Swept, dict[str, Any]]:
    """Return the fit of the form that leaves the least; see :func:`fitted`."""
    fits = [fitted(runs, scale, name, form) for form in FORMS]
    return min(fits, key=lambda fit: fit[1]["residual_rms"])


def fitted(runs: Runs, scale: Scale, name: str, form: type[Swept]) -> tuple[Swept, dict[str, Any]]:
    """Return the truth of a form nearest to the runs, and how well it fits.

    Args:
        runs: lines of the sweep, of which those near the target count, unless they diverged.
        scale: the profile.
        name: where the truth comes from, in a line.
        form: what to fit.

    Raises:
        ReBenchError: if there are fewer runs than two for each coefficient.
    """
    near = [run for run in runs if run["share"] >= NEAREST]
    good = [run for run in near if run["loss"] is not None]
    losses = np.array([run["loss"] for run in good])
    starts = form.starts(float(losses.min(initial=np.inf)))
    if len(good) < 2 * len(starts[0]):
        raise ReBenchError(
            f"{len(good)} runs are too few for {len(starts[0])} coefficients; sweep first: python tools/sweep.py"
        )
    shape = shape_of(good, scale, name, form)

    def residuals(coefficients: Sequence[float]) -> Any:
        truth = replace(shape, coefficients=tuple(map(float, coefficients)))
        return losses - [truth.loss(run["n_embd"], run["max_iters"]) for run in good]

    fits = [least_squares(residuals, start, loss="soft_l1", f_scale=OUTLIER) for start in starts]
    best = min(fits, key=lambda fit: fit.cost)
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


def shape_of(runs: Runs, scale: Scale, name: str, form: type[Swept]) -> Swept:
    """Return a truth of runs without its coefficients."""
    widths = sorted({run["n_embd"] for run in runs})
    return form(
        name,
        (),
        math.sqrt(widths[0] * widths[-1]),
        (widths[0], widths[-1]),
        scale.target_flops,
        scale.flops(1, 1),
        scale.n_head,
        MOST_SHARE,
    )


def seed_spread(runs: Runs) -> float | None:
    """Return the standard deviation between seeds, pooled over the runs that differ in nothing else."""
    by_run = defaultdict(list)
    for run in runs:
        by_run[run["n_embd"], run["max_iters"]].append(run["loss"])
    variances = [statistics.variance(losses) for losses in by_run.values() if len(losses) > 1]
    return math.sqrt(statistics.fmean(variances)) if variances else None


def problems(runs: Runs, surface: Swept) -> list[str]:
    """Return why the truth is not sound, a line each; none if it is.

    At every swept budget the best mean loss must be inside, and lower than those two widths away by three times the
    spread between seeds at that budget. More compute must lower the loss at the best width, and raise it at no edge.
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
    """Return what is not sound at one budget, a line each."""
    spread = seed_spread(runs)
    if spread is None:
        return [f"at {share:g} of the target no run has a second seed, so that nothing is known of the spread"]
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


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a sweep.

    Raises:
        UsageError: if there is no such file.
    """
    if not path.is_file():
        raise UsageError(f"{path}: there is no sweep yet; run: python tools/sweep.py")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, fit, check, write."""
    parser = argparse.ArgumentParser(description="Fit the truth of a profile to its sweep.")
    parser.add_argument("--profile", choices=[name for name in SCALES if SCALES[name].experiments], required=True)
    parser.add_argument("--runs", metavar="FILE", type=Path, help="lines of sweep.py, if not in the usual place")
    parser.add_argument("--out", metavar="FILE", type=Path, help="where to write the truth, if not into the task")
    parser.add_argument("--instance", type=int, default=0, help="which one of the profile (default: 0)")
    options = parser.parse_args(arguments)
    with cli_entry_point("fit.py"):
        profile, instance = options.profile, options.instance
        source = options.runs or runs_file(profile, instance)
        runs, scale = read_runs(source), scale_of(profile, instance)
        name = f"our sweep of {len(runs)} runs around {scale.target_flops:g} FLOPs"
        surface, quality = best_fitted(runs, scale, name)
        reasons = problems(runs, surface)
        if reasons:
            raise ReBenchError("the truth is not sound:\n" + "\n".join(reasons))
        origin = {"canary": CANARY, "runs": {"file": source.name, "sha256": sha256_of(source)}}
        record = {"kind": surface.kind, **asdict(surface), "best": vars(surface.best), **quality, **origin}
        (options.out or truth_file(profile, instance)).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"best: {surface.best}; residuals {quality['residual_rms']:.4f} root mean square")


if __name__ == "__main__":
    main()
