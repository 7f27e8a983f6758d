"""Test scores over time and the expected best of k runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from re_bench_evaluation.report.data import AttemptInfo, Clock, RunInfo, TaskInfo
from re_bench_evaluation.report.estimates import budget_curves, make_cells, mean_curve, scores_at

TASK = TaskInfo("t/cpu/v1", "t", "t", "T", "cpu", 1, "higher", "max", "points", None, modelled=False, model=None,
                stand_in=False)  # fmt: skip
HOUR = 3600.0
few = settings(max_examples=40, deadline=None)
MOMENTS = st.lists(st.tuples(st.floats(0, 4), st.none() | st.floats(-2, 2)), max_size=6)


def attempt(n: int, hours: float | None, so_far: float | None) -> AttemptInfo:
    seconds = None if hours is None else hours * HOUR
    status = "invalid" if so_far is None else "valid"
    return AttemptInfo(n, "", seconds, seconds, 1.0, status, so_far, so_far, None, so_far, "", "", kept=False)  # type: ignore[arg-type]


def run(key: str, *moments: tuple[float | None, float | None], hours: float = 4.0, task: str = TASK.key) -> RunInfo:
    """Return a run whose score so far changes at times in hours."""
    attempts = tuple(attempt(number, *moment) for number, moment in enumerate(moments, 1))
    last = attempts[-1].so_far if attempts else None
    fields = {field.name: None for field in dataclasses.fields(RunInfo)}
    known = {
        "key": key, "path": key, "evaluation": "e", "agent": "a", "task": task, "state": "ended",
        "wall_s": hours * HOUR, "working_s": hours * HOUR, "tries": 1, "incomplete_lines": 0, "attempts": attempts,
        "reward": last, "flags": (),
        "counted": max(0.0, last or 0.0), "instances": (), "scorers": (), "sandboxes": (),
    }  # fmt: skip
    return RunInfo(**(fields | known))  # type: ignore[arg-type]


def test_score_counts_from_submission_and_is_clipped() -> None:
    one = run("r", (1.0, -0.5), (2.0, 0.4), (3.0, 0.3))
    times = np.array([0.0, 0.99, 1.0, 1.99, 2.0, 3.0, 9.0]) * HOUR
    assert scores_at(one, times, "wall").tolist() == [0, 0, 0, 0, 0.4, 0.3, 0.3]
    assert scores_at(run("none"), times, "working").tolist() == [0] * 7


@pytest.mark.parametrize("clock", ["wall", "working"])
def test_curves_keep_the_best_score_after_a_worse_or_invalid_attempt(clock: Clock) -> None:
    made = run("r", (1.0, 0.8), (2.0, 0.8), (3.0, 0.8))
    rewards = (0.8, 0.3, None)
    attempts = (dataclasses.replace(one, reward=own) for one, own in zip(made.attempts, rewards, strict=True))
    one = dataclasses.replace(made, attempts=tuple(attempts))
    curve = mean_curve([one], clock)
    assert curve is not None
    assert curve.mean == (0.0, 0.8, 0.8, 0.8, 0.8)
    (cell,) = make_cells([one], {TASK.key: TASK}, curves=True)
    budget = budget_curves([cell], {one.key: one}, {TASK.key: TASK}, None)[0]
    assert cell.reward.value == budget.points[0].reward.value == curve.mean[-1]


def test_mean_curve_steps_with_its_runs() -> None:
    curve = mean_curve([run("a", (1.0, 0.5)), run("b", (2.0, 1.0), hours=3.0)], "wall")
    assert curve is not None
    assert curve.hours == (0.0, 1.0, 2.0, 4.0)
    assert curve.mean == (0.0, 0.25, 0.75, 0.75)
    assert (curve.low[2], curve.high[2]) == pytest.approx((0.75 - 12.7062 / 4, 0.75 + 12.7062 / 4), abs=1e-4)
    assert curve.n == 2


@few
@given(st.lists(MOMENTS, min_size=1, max_size=5))
def test_curve_ends_at_mean_reward_in_any_order(runs: list[list[tuple[float, float | None]]]) -> None:
    made = [run(str(number), *sorted(moments, key=lambda moment: moment[0])) for number, moments in enumerate(runs)]
    curve, other = mean_curve(made, "wall"), mean_curve(made[::-1], "wall")
    assert curve is not None
    assert curve == other
    assert curve.mean[-1] == pytest.approx(np.mean([one.counted for one in made]), abs=2e-6)
    assert list(curve.hours) == sorted(curve.hours)
    assert len(curve.hours) <= 150
    for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True):
        assert (low is None) == (len(made) == 1)
        assert low is None or high is None or low <= mean <= high


def test_missing_times_are_flagged() -> None:
    runs = [run("a", (None, 0.5)), run("b", (1.0, 0.5))]
    assert mean_curve(runs, "wall") is None
    (cell,) = make_cells(runs, {TASK.key: TASK}, curves=True)
    assert cell.curves == ()
    assert [flag.kind for flag in cell.flags].count("clock") == 2
    assert budget_curves([cell], {one.key: one for one in runs}, {TASK.key: TASK}, None) == []


def test_budget_curves() -> None:
    once = [run("a", (0.5, 0.2), (3.0, 1.0)), run("b", (0.25, 0.6)), run("c")]
    runs = [dataclasses.replace(one, key=f"{one.key}{number}") for number in range(3) for one in once]
    cells = make_cells(runs, {TASK.key: TASK}, curves=False)
    curves = budget_curves(cells, {one.key: one for one in runs}, {TASK.key: TASK}, None)
    assert [(curve.clock, curve.run_hours) for curve in curves] == [
        (clock, hours) for clock in ("wall", "working") for hours in (4.0, 2.0, 1.0, 0.5)
    ]
    whole, half = curves[0], curves[1]
    assert [(point.k, point.hours) for point in whole.points] == [(1, 4.0), (2, 8.0), (3, 12.0)]
    # Of the whole runs: 1.0, 0.6 and 0, three times each; of their first two hours: 0.2, 0.6 and 0.
    assert [point.reward.value for point in whole.points] == pytest.approx(
        [1.6 / 3, (21 + 12 * 0.6) / 36, (64 + 19 * 0.6) / 84]
    )
    assert [point.reward.value for point in half.points] == pytest.approx(
        [0.8 / 3, (21 * 0.6 + 12 * 0.2) / 36, (64 * 0.6 + 19 * 0.2) / 84]
    )
    planned = budget_curves(cells, {one.key: one for one in runs}, {TASK.key: TASK}, 2.0)
    assert planned[0].run_hours == 2.0


def test_best_of_k_excludes_tasks_with_last_aggregation() -> None:
    hidden = dataclasses.replace(TASK, key="h/cpu/v1", aggregation="last")
    empty = dataclasses.replace(TASK, key="w/cpu/v1")
    runs = [run("a", (1.0, 0.2)), run("b", (1.0, 0.9), task=hidden.key),
            dataclasses.replace(run("c", task=empty.key), state="waiting", counted=None)]  # fmt: skip
    tasks = {task.key: task for task in (TASK, hidden, empty)}
    cells = make_cells(runs, tasks, curves=False)
    curve = budget_curves(cells, {one.key: one for one in runs}, tasks, None)[0]
    assert curve.tasks == (TASK.key,)
    assert curve.points[0].reward.value == pytest.approx(0.2)
    texts = [flag.text for flag in curve.flags]
    assert texts == [
        "excluded: h/cpu/v1 (the last score counts, not the best)", "excluded: w/cpu/v1 (no finished run)",
    ]  # fmt: skip
