"""Test properties of means and of the expected best of k."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from re_bench_evaluation.report.estimates import best_of_each_k, mean_of_rows, mean_over_tasks

REWARDS = st.floats(-20, 3)
RUNS = st.lists(REWARDS, min_size=1, max_size=8)
TASKS = st.lists(RUNS, min_size=1, max_size=4)
few = settings(max_examples=40, deadline=None)


@few
@given(RUNS)
def test_best_of_k_is_the_mean_over_subsets(values: list[float]) -> None:
    best = [estimate.value for estimate in best_of_each_k([values])]
    assert len(best) == len(values)
    for k, value in enumerate(best, 1):
        subsets = [max(subset) for subset in itertools.combinations(values, k)]
        assert value == pytest.approx(statistics.fmean(subsets), abs=1e-9)


@few
@given(TASKS)
def test_best_of_k_increases_and_lies_in_its_interval(tasks: list[list[float]]) -> None:
    estimates = best_of_each_k(tasks)
    n = min(map(len, tasks))
    assert [estimate.n for estimate in estimates] == [n] * n
    values = [estimate.value or 0.0 for estimate in estimates]
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(values))
    for estimate in estimates:
        assert (estimate.low is None) == (estimate.high is None) == (n == 1)
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


def test_interval_coverage() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for _trial in range(200):
        estimate = mean_over_tasks([generator.normal(0.5, 1.0, size=30).tolist()])
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 0.5 <= estimate.high
    assert 180 <= covered <= 198


def test_no_runs_and_single_runs() -> None:
    assert (mean_over_tasks([[]]).value, mean_over_tasks([[]]).n) == (None, 0)
    one = mean_over_tasks([[0.5]])
    assert (one.value, one.low, one.high, one.n) == (0.5, None, None, 1)
    assert mean_over_tasks([[1.0, 2.0], []]).value is None
    assert best_of_each_k([]) == []
    assert best_of_each_k([[1.0], []]) == []
    two = mean_over_tasks([[0.0, 1.0]])
    assert (two.low, two.high) == (0.0, 1.0)


def test_many_runs_do_not_overflow() -> None:
    values = [float(value) for value in range(2000)]
    best = [estimate.value for estimate in best_of_each_k([values], 1000)]
    assert all(value is not None and math.isfinite(value) for value in best)
    assert best[1] == pytest.approx(2 * 2001 / 3 - 1)  # the expected larger of two different ones
