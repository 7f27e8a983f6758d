"""Means over runs, and the expected best of several runs, with intervals by the bootstrap.

All intervals are percentile bootstrap intervals of 95 % (B. Efron, "Bootstrap methods: another look at the jackknife",
Annals of Statistics 7, 1979): runs are drawn anew with replacement, within each task by itself where there are several.
They depend on the values alone, not on their order: the seed is fixed and values are sorted before they are drawn.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from re_bench_evaluation.report.task_data import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SEED = 21
_PERCENTILES = (2.5, 97.5)
_DRAWN = 200_000
"""How many values are drawn for an interval, unless that would be fewer than the resamples below."""
_RESAMPLES = (500, 2000)
_LEAST = 2
"""Runs that an interval needs."""


def mean_over_runs(values: Sequence[float]) -> Estimate:
    """Return the mean of a figure over runs; no value for none, no interval for one."""
    return mean_over_tasks([values])


def mean_over_tasks(tasks: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean over tasks of each one's mean over its runs; each task weighs the same, whatever its runs.

    There is no value if a task has no run, and no interval if one has fewer than two. ``n`` counts all runs.
    """
    n = sum(map(len, tasks))
    if not tasks or not all(map(len, tasks)):
        return Estimate(None, None, None, n)
    best = best_of_each_k(tasks, 1)[0]
    return replace(best, n=n)


def best_of_each_k(tasks: Sequence[Sequence[float] | NDArray[np.float64]], most: int | None = None) -> list[Estimate]:
    """Return the expected best of k runs, averaged over tasks, for k from 1 to ``most``.

    For a task it is the mean, over all subsets of k of its n runs, of the highest of a subset: with the values in
    ascending order, the sum of ``values[i - 1] * C(i - 1, k - 1) / C(n, k)`` over i from k to n. This is the unbiased
    estimator of pass@k (M. Chen et al., arXiv 2107.03374, section 2.1) with rewards in the place of passed or failed.

    ``most`` is at most the smallest number of runs of a task, which it is if it is None; ``n`` is that number. The
    runs are drawn anew within each task for the intervals, and there are none if a task has fewer than two.
    """
    n = min(map(len, tasks), default=0)
    most = n if most is None else min(most, n)
    if not most:
        return []
    ordered = sorted((_sorted(values) for values in tasks), key=lambda values: values.tolist())
    weights = [_weights(len(values), most) for values in ordered]
    exact = np.mean([values @ weight for values, weight in zip(ordered, weights, strict=True)], axis=0)
    if n < _LEAST:
        return [Estimate(float(value), None, None, n) for value in exact]
    generator, count = np.random.default_rng(_SEED), _resamples(max(map(len, ordered)))
    drawn = [
        np.sort(values[generator.integers(len(values), size=(count, len(values)))], axis=1) @ weight
        for values, weight in zip(ordered, weights, strict=True)
    ]
    low, high = np.percentile(np.mean(drawn, axis=0), _PERCENTILES, axis=0)
    # A limit may be on the wrong side: by rounding, or near k = n, where few resamples have the best runs of all tasks.
    limits = zip(exact, np.minimum(low, exact), np.maximum(high, exact), strict=True)
    return [Estimate(float(value), float(lower), float(upper), n) for value, lower, upper in limits]


def mean_of_rows(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean, lower and upper limit of each column, where a row is a run; the limits of a single row are NaN.

    Runs are drawn as wholes, so that all columns of a resample are of the same runs.
    """
    rows = rows[np.lexsort(rows.T[::-1])]
    mean, n = rows.mean(axis=0), len(rows)
    if n < _LEAST:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    # How often each run is drawn, so that one product gives the means of all resamples.
    times = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), size=_resamples(rows.size))
    low, high = np.percentile(times @ rows / n, _PERCENTILES, axis=0)
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def _sorted(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sort(np.asarray(values, dtype=np.float64))


def _resamples(size: int) -> int:
    """Return how many resamples of so many values are drawn."""
    fewest, most = _RESAMPLES
    return max(fewest, min(most, _DRAWN // size))


@cache
def _weights(n: int, most: int) -> NDArray[np.float64]:
    """Return what each of n ascending values (a row) weighs in the expected best of k (a column, k from 1 to most)."""
    k = np.arange(1, most + 1)
    weights = np.zeros((n, most))
    weights[n - 1] = k / n  # C(n - 1, k - 1) / C(n, k)
    for i in range(n - 1, 0, -1):  # and C(i - 1, k - 1) is C(i, k - 1) * (i - k + 1) / i
        weights[i - 1] = weights[i] * np.maximum(i - k + 1, 0) / i
    return weights
