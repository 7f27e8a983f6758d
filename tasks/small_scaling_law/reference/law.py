# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Fit the law: a parabola of the loss over ln(width) at every budget, and laws through their lowest points.

1. A parabola in ln(width), through the widths within a factor of two of the best one, gives a budget's best width and
   its loss (Hoffmann et al., arXiv 2203.15556, approach 2). Losses rise faster than that further away.
2. The best width grows as the fourth root of compute: their rule that parameters and tokens grow alike, with parameters
   proportional to the squared width. Budgets within a factor of four are too close to measure that power: a fit gives
   between 0.07 and 0.37 (5 and 95 per cent of draws, three seeds). The budgets' widths are extrapolated to the target
   with it and averaged.
3. The lowest loss falls towards a floor, the irreducible loss, as a power of compute (their approach 3, along the line
   of best widths); both are measured. Budgets within a factor of four cannot determine a floor; it is 0 then. Small
   runs are still in the first, steep part of training, which no power law describes, so budgets are weighted by size.
4. The fit is repeated with losses resampled from the residuals of the parabolas; the spread of the predictions is the
   law's uncertainty. Only the point estimate is submitted.
"""

from __future__ import annotations

import math

import numpy as np

NEAR = math.log(2)
"""Maximum distance from the best width, in ln(width), of losses used for the parabola."""
WIDTH_POWER = 0.25
FAR = 8.0
"""Minimum ratio of the largest to the smallest budget for measuring a floor of the loss."""
DRAWS = 300
NOISE = 0.02
"""Lower bound of a loss's standard deviation, in nats."""


def near_best(losses):
    """Return the points (ln width, loss) used at one budget, for losses by width."""
    best = min(losses, key=lambda width: np.mean(losses[width]))
    return [
        (math.log(width), loss)
        for width, found in losses.items()
        for loss in found
        if abs(math.log(width / best)) <= NEAR
    ]


def parabola(points):
    """Return the lowest point (ln width, loss) of a parabola through points of both, and the residuals."""
    x, y = np.array(points).T
    curve = np.polyfit(x, y, 2)
    if curve[0] <= 0:  # no minimum: the lowest point seen
        lowest = int(np.argmin(y))
        return (x[lowest], y[lowest]), np.zeros(len(y))
    place = min(max(-curve[1] / (2 * curve[0]), x.min()), x.max())
    return (place, float(np.polyval(curve, place))), y - np.polyval(curve, x)


def extrapolate(points_of, target):
    """Return width, loss, the measured powers of both, and the loss's floor, for points by budget."""
    flops = np.log(np.array(list(points_of)) / target)
    weights = np.exp(flops)
    widths, losses = np.array([parabola(points)[0] for points in points_of.values()]).T
    width = np.average(widths - WIDTH_POWER * flops, weights=weights)
    # polyfit squares its weights
    width_power, _width = np.polyfit(flops, widths, 1, w=np.sqrt(weights))
    loss, loss_power, floor = falling(flops, losses, weights)
    return math.exp(width), loss, width_power, loss_power, floor


def falling(flops, losses, weights):
    """Return the loss at ``flops`` 0, the power with which it falls there and the floor, for ln(FLOPs over target)."""
    if np.ptp(flops) < math.log(FAR):
        power, loss = np.polyfit(flops, np.log(losses), 1, w=np.sqrt(weights))
        return math.exp(loss), power, 0.0
    normed = weights / weights.sum()
    fits = [above_floor(power, flops, losses, normed) for power in np.linspace(-1, -0.01, 199)]
    _error, floor, above, power = min(fits)
    return floor + above, power, floor


def above_floor(power, flops, losses, weights):
    """Return the error of the best floor + above * FLOPs^power, both at least 0, with floor, above and power.

    The weights' sum is 1.
    """
    shares = np.exp(power * flops)
    mean_share, mean_loss = weights @ shares, weights @ losses
    above = weights @ ((shares - mean_share) * losses) / (weights @ (shares - mean_share) ** 2)
    floor = mean_loss - above * mean_share
    if floor < 0:
        floor, above = 0.0, weights @ (shares * losses) / (weights @ shares**2)
    error = weights @ (floor + above * shares - losses) ** 2
    return float(error), float(floor), float(above), float(power)


def predict(losses_of, scale):
    """Return the answer and a report of its uncertainty, from losses by width by budget."""
    points_of = {flops: near_best(losses) for flops, losses in losses_of.items()}
    noise = max(NOISE, float(np.concatenate([parabola(points)[1] for points in points_of.values()]).std()))
    draw = np.random.default_rng(0)
    fits = [
        extrapolate(
            {flops: [(x, y + draw.normal(0, noise)) for x, y in points] for flops, points in points_of.items()},
            scale.target_flops,
        )
        for _ in range(DRAWS)
    ]
    found = extrapolate(points_of, scale.target_flops)
    width = nearest(found[0], scale)
    answer = {
        "n_embd": width,
        "max_iters": scale.steps(width, scale.target_flops),
        "loss_prediction": round(found[1], 4),
    }
    names = ("n_embd", "loss_prediction", "measured_power_of_n_embd", "power_of_loss", "floor")
    report = {
        name: {
            "estimate": round(float(value), 4),
            "percentiles_5_50_95": np.percentile(drawn, [5, 50, 95]).round(4).tolist(),
        }
        for name, value, drawn in zip(names, found, zip(*fits, strict=True), strict=True)
    }
    return answer, {"noise": round(noise, 4), **report}


def nearest(width, scale):
    """Return the nearest valid width."""
    return max(1, round(width / scale.n_head)) * scale.n_head
