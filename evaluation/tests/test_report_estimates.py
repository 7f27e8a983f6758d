"""Test properties of means and of the expected best of k."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from re_bench_evaluation.report.estimates import best_of_each_k, difference, mean_of_rows, mean_over_tasks

if TYPE_CHECKING:
    from re_bench_evaluation.report.data import Estimate

REWARDS = st.floats(-20, 3)
RUNS = st.lists(REWARDS, min_size=1, max_size=12)
TASKS = st.lists(RUNS, min_size=1, max_size=4)
few = settings(max_examples=40, deadline=None)


@few
@given(RUNS)
def test_best_of_k_is_the_mean_over_subsets(values: list[float]) -> None:
    best = [estimate.value for estimate in best_of_each_k([values])]
    assert len(best) == max(1, len(values) // 3)
    for k, value in enumerate(best, 1):
        subsets = [max(subset) for subset in itertools.combinations(values, k)]
        assert value == pytest.approx(statistics.fmean(subsets), abs=1e-9)


@few
@given(TASKS)
def test_best_of_k_increases_and_lies_in_its_interval(tasks: list[list[float]]) -> None:
    estimates = best_of_each_k(tasks)
    n = min(map(len, tasks))
    assert [estimate.n for estimate in estimates] == [n] * max(1, n // 3)
    values = [estimate.value or 0.0 for estimate in estimates]
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(values))
    for estimate in estimates:
        assert (estimate.low is None) == (estimate.high is None)
        assert estimate.low is None or n > 1
        if estimate.low is not None and estimate.high is not None and estimate.value is not None:
            assert estimate.low <= estimate.value <= estimate.high


@few
@given(TASKS, st.randoms(use_true_random=False))
def test_order_of_runs_and_tasks_does_not_matter(tasks: list[list[float]], random: object) -> None:
    assert hasattr(random, "sample")
    shuffled = [random.sample(values, len(values)) for values in tasks]
    shuffled = random.sample(shuffled, len(shuffled))
    assert best_of_each_k(shuffled) == best_of_each_k(tasks)
    assert mean_over_tasks(shuffled) == mean_over_tasks(tasks)


@few
@given(TASKS)
def test_tasks_have_equal_weight(tasks: list[list[float]]) -> None:
    estimate = mean_over_tasks(tasks)
    expected = statistics.fmean(statistics.fmean(values) for values in tasks)
    assert estimate.value == pytest.approx(expected, abs=1e-9)
    assert estimate.n == sum(map(len, tasks))


@few
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_means_of_columns(runs: int, columns: int, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(runs, columns))
    mean, low, high = mean_of_rows(rows)
    assert mean == pytest.approx(rows.mean(axis=0))
    assert np.isnan(low).all() == np.isnan(high).all() == (runs == 1)
    if runs > 1:
        assert (low <= mean).all()
        assert (mean <= high).all()
    again = mean_of_rows(rows[::-1])
    assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip((mean, low, high), again, strict=True))


def rewards(generator: np.random.Generator, share: float, size: int) -> list[float]:
    """Draw rewards of which about ``share`` are above 0, as in the paper's results."""
    above = np.clip(generator.normal(0.6, 0.35, size), 0, None)
    return np.where(generator.random(size) < share, above, 0.0).tolist()  # type: ignore[no-any-return]


def expected_best(share: float, k: int) -> float:
    values = np.sort(rewards(np.random.default_rng(7), share, 100_000))
    return float(values @ np.diff((np.arange(100_001) / 100_000) ** k))


def coverage(estimates: list[Estimate], truth: float) -> float:
    """Return the share of intervals that contain the truth; estimates without an interval are left out."""
    intervals = [(one.low, one.high) for one in estimates if one.low is not None and one.high is not None]
    return sum(low <= truth <= high for low, high in intervals) / len(intervals)


SHARES = (0.5, 0.3, 0.7, 0.5, 0.8)


@pytest.mark.parametrize(("tasks", "runs"), [(1, 5), (1, 10), (1, 30), (5, 3), (5, 5), (5, 9), (5, 30)])
def test_intervals_contain_the_truth(tasks: int, runs: int) -> None:
    generator, k = np.random.default_rng(0), max(1, runs // 3)
    shares = SHARES[:tasks]
    samples = [best_of_each_k([rewards(generator, share, runs) for share in shares]) for _trial in range(600)]
    for draws, position in ((1, 0), (k, -1)):
        truth = float(np.mean([expected_best(share, draws) for share in shares]))
        covered = coverage([sample[position] for sample in samples], truth)
        assert (0.87 if tasks == 1 else 0.93) <= covered <= 0.98


@pytest.mark.parametrize("runs", [3, 5, 20])
def test_intervals_of_differences_contain_the_truth(runs: int) -> None:
    generator, others = np.random.default_rng(1), SHARES[::-1]
    samples = [
        difference([rewards(generator, s, runs) for s in SHARES], [rewards(generator, s, 2 * runs) for s in others])
        for _trial in range(600)
    ]
    assert 0.93 <= coverage(samples, 0.0) <= 0.98  # the same shares, in another order
    assert np.mean([sample.value for sample in samples if sample.value is not None]) == pytest.approx(0, abs=0.01)


def test_differences() -> None:
    one = difference([[0.0, 1.0], [2.0, 2.0]], [[0.0, 0.5], [1.0, 1.0]])
    assert one.value == pytest.approx(0.625)
    assert one.n == 8
    assert one.low is not None
    assert one.high is not None
    assert one.high - 0.625 == pytest.approx(0.625 - one.low)
    assert difference([[1.0]], [[0.5, 0.5]]).value == 0.5
    assert difference([[1.0]], [[0.5, 0.5]]).low is None
    assert difference([[1.0]], [[]]).value is None


def test_no_runs_and_single_runs() -> None:
    assert (mean_over_tasks([[]]).value, mean_over_tasks([[]]).n) == (None, 0)
    one = mean_over_tasks([[0.5]])
    assert (one.value, one.low, one.high, one.n) == (0.5, None, None, 1)
    assert mean_over_tasks([[1.0, 2.0], []]).value is None
    assert best_of_each_k([]) == []
    assert best_of_each_k([[1.0], []]) == []
    two = mean_over_tasks([[0.0, 1.0]])
    assert (two.low, two.high) == pytest.approx((0.5 - 12.7062 / 2, 0.5 + 12.7062 / 2), abs=1e-4)
    equal = mean_over_tasks([[0.3] * 7])
    assert equal.value == pytest.approx(0.3)
    assert (equal.low, equal.high) == (None, None)


def test_many_runs_do_not_overflow() -> None:
    values = [float(value) for value in range(2000)]
    best = [estimate.value for estimate in best_of_each_k([values], 1000)]
    assert all(value is not None and math.isfinite(value) for value in best)
    assert best[1] == pytest.approx(2 * 2001 / 3 - 1)  # the expected larger of two different ones
