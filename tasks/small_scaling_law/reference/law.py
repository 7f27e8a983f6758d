# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Fit the scaling law: a parabola of the loss over ln(width) for each budget, and laws through the parabolas' minima.

1. For each budget, a parabola in ln(width) gives the best width and its loss (Hoffmann et al., arXiv 2203.15556,
   approach 2). The parabola is fitted to the widths within a factor of two of the best width; further away, losses rise
   faster than a parabola.
2. The best width grows as the fourth root of compute. This follows from Hoffmann et al.'s rule that parameters and
   tokens grow at the same rate, because parameters are proportional to the squared width. Budgets within a factor of
   four are too close together to measure the power: fits give 0.02 to 0.39 (5th and 95th percentiles of draws, four
   seeds). The best width of each budget is extrapolated to the target with the fixed power, and the results are
   averaged.
3. The lowest loss falls towards a floor, the irreducible loss, as a power of compute (their approach 3, along the line
   of best widths). Floor and power are measured; if the budgets are within a factor of eight, they cannot determine a
   floor, and the floor is 0. Budgets are weighted by their compute, because small runs are still in the steep first
   part of training, which no power law describes.
4. To estimate the uncertainty, the fit is repeated with noise added to the losses; the noise has the standard deviation
   of the parabolas' residuals. Only the point estimate is submitted.
"""

from __future__ import annotations

import math

import numpy as np

NEAR = math.log(2)
"""Maximum distance from the best width, in ln(width), of points used for the parabola."""
WIDTH_POWER = 0.25
"""The best width grows as this power of compute."""
FAR = 8.0
"""Minimum ratio of the largest to the smallest budget for measuring the floor of the loss."""
DRAWS = 300
"""Number of fits with noise."""
NOISE = 0.02
"""Lower bound of the noise's standard deviation, in nats."""


def near_best(losses):
    """Return the points (ln width, loss) near the best width, given the losses by width at one budget."""
    best = min(losses, key=lambda width: np.mean(losses[width]))
    return [
        (math.log(width), loss)
        for width, found in losses.items()
        for loss in found
        if abs(math.log(width / best)) <= NEAR
    ]


def parabola(points):
    """Fit a parabola to points (ln width, loss); return its minimum within the points' widths, and the residuals."""
    x, y = np.array(points).T
    curve = np.polyfit(x, y, 2)
    if curve[0] <= 0:  # without a minimum, use the lowest point
        lowest = int(np.argmin(y))
        return (x[lowest], y[lowest]), np.zeros(len(y))
    place = min(max(-curve[1] / (2 * curve[0]), x.min()), x.max())
    return (place, float(np.polyval(curve, place))), y - np.polyval(curve, x)


def extrapolate(points_of, target):
    """Return the best width and its loss at ``target`` FLOPs, their measured powers of compute, and the loss's floor.

    ``points_of`` has the points near the best width for each budget, by FLOPs.
    """
    flops = np.log(np.array(list(points_of)) / target)
    weights = np.exp(flops)
    widths, losses = np.array([parabola(points)[0] for points in points_of.values()]).T
    width = np.average(widths - WIDTH_POWER * flops, weights=weights)
    # The square root is needed because polyfit squares its weights.
    width_power, _width = np.polyfit(flops, widths, 1, w=np.sqrt(weights))
    loss, loss_power, floor = falling(flops, losses, weights)
    return math.exp(width), loss, width_power, loss_power, floor


def falling(flops, losses, weights):
    """Return the loss at the target, the power of compute with which it falls, and its floor.

    ``flops`` are the budgets as ln(FLOPs / target).
    """
    if np.ptp(flops) < math.log(FAR):
        power, loss = np.polyfit(flops, np.log(losses), 1, w=np.sqrt(weights))
        return math.exp(loss), power, 0.0
    normed = weights / weights.sum()
    fits = [above_floor(power, flops, losses, normed) for power in np.linspace(-1, -0.01, 199)]
    _error, floor, above, power = min(fits)
    return floor + above, power, floor


def above_floor(power, flops, losses, weights):
    """Fit floor + above * FLOPs^power with a floor of at least 0; return the squared error, floor, above and power.

    The weights must add up to 1.
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
    """Return the answer, and a report of its uncertainty.

    ``losses_of`` maps each budget in FLOPs to the losses by width.
    """
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
    """Return the valid width that is nearest to ``width``."""
    return max(1, round(width / scale.n_head)) * scale.n_head
