"""Tests of what of the GPU clock runs without a GPU: memory, plans, truth, and the checks of what a player says."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from re_bench.errors import InvalidSubmissionError, UsageError
from re_bench.guest.worker import load

TASK = Path(__file__).parents[1]
GIB = 1 << 30
LENGTH = 100_000_000
GRAIN = 2 << 20


@pytest.fixture(scope="module")
def referee() -> Any:
    return _imported("measured.referee")


@pytest.fixture(scope="module")
def contest() -> Any:
    return _imported("measured.contest")


@pytest.fixture(scope="module")
def arena() -> Any:
    return load(TASK / "measured" / "player" / "arena.py", "triton_cumsum_arena")


def _imported(name: str) -> Any:
    sys.path.insert(0, str(TASK))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TASK))


def test_the_truth_on_a_device_is_the_truth(truth: Any, referee: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for chunk in (referee._CHUNK, 1000):
        monkeypatch.setattr(referee, "_CHUNK", chunk)
        for case in truth.cases(chunk):
            x = torch.from_numpy(case.x)
            y = torch.empty_like(x)
            referee.prefix_sum(x, y)
            truth.compare(y.numpy(), truth.prefix_sum(case.x), case.label)


@settings(deadline=None)
@given(free=st.integers(0, 400 * GIB))
def test_a_plan_fits_the_memory_or_is_refused(free: int) -> None:
    referee = _imported("measured.referee")
    array = 4 * LENGTH
    if free < 2 * referee.SPARE + referee.RESERVE + referee.CALLS[0] * 6 * array:
        with pytest.raises(UsageError, match="GiB of GPU memory must be free"):
            referee.Plan.of(free, LENGTH)
        return
    plan = referee.Plan.of(free, LENGTH)
    assert plan.calls in referee.CALLS
    assert min(plan.ours, plan.theirs) >= plan.calls * array + referee.SPARE
    assert plan.ours + plan.theirs + 4 * plan.calls * array <= free


def test_a_24_gb_gpu_has_room_and_a_large_one_for_more(referee: Any) -> None:
    assert referee.Plan.of(22 * GIB, LENGTH).calls >= 4
    assert referee.Plan.of(139 * GIB, LENGTH).calls == referee.CALLS[-1]


def test_offsets_of_separate_results_are_taken(referee: Any) -> None:
    value = {"nonce": "n", "offsets": [400, 0]}
    assert referee.offsets_of(value, "n", 2, 100, 800) == [400, 0]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"nonce": "n"},
        {"nonce": "another", "offsets": [0, 400]},
        {"offsets": [0, 400]},
        {"nonce": "n", "offsets": [0]},
        {"nonce": "n", "offsets": [0, 400, 800]},
        {"nonce": "n", "offsets": [0, True]},
        {"nonce": "n", "offsets": [0, 400.0]},
        {"nonce": "n", "offsets": [0, None]},
        {"nonce": "n", "offsets": [0, -4]},
        {"nonce": "n", "offsets": [0, 401]},
        {"nonce": "n", "offsets": [0, 404]},
        {"nonce": "n", "offsets": [0, 10**30]},
        {"nonce": "n", "offsets": [0, 396]},
        {"nonce": "n", "offsets": [0, 0]},
        {"nonce": "n", "offsets": "0, 400"},
    ],
)
def test_other_offsets_are_refused(referee: Any, value: Any) -> None:
    with pytest.raises(InvalidSubmissionError):
        referee.offsets_of(value, "n", 2, 100, 800)


@pytest.mark.parametrize("value", [None, "1", [1.0], {}, float("inf"), 1e300])
def test_a_claim_that_is_no_number_is_nan(contest: Any, value: Any) -> None:
    assert contest._claim([contest.Turn(1.0, contest._claimed(value))], 1) is None


def test_the_control_is_what_the_clock_says_beyond_the_events_of_our_own(contest: Any) -> None:
    alone = {"a": [contest.Turn(1.5, 1.0), contest.Turn(1.6, 1.0)], "b": [contest.Turn(9.55, 9.0)]}
    assert contest._control(alone, ["a", "b"]) == pytest.approx(0.55)


def test_turns_of_few_calls_have_no_more_removed_from_each(contest: Any) -> None:
    turns = [contest.Turn(0.020, 0.0)]
    assert contest._clocked(turns, 10, 0.0001).milliseconds == pytest.approx(1.9)
    assert contest._clocked(turns, 1, 0.0001).milliseconds == pytest.approx(19.9)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5 * GRAIN)), max_size=40))
def test_ranges_never_overlap_and_come_together_again(steps: list[tuple[bool, int]]) -> None:
    ranges = load(TASK / "measured" / "player" / "arena.py", "triton_cumsum_arena").Ranges(GRAIN, 16 * GRAIN)
    taken: dict[int, int] = {}
    for give, size in steps:
        if give and taken:
            start = min(taken)
            del taken[start]
            ranges.give(start)
            continue
        start = ranges.take(size)
        if start:
            assert start >= GRAIN
            assert start + size <= 17 * GRAIN
            assert all(start + size <= other or other + length <= start for other, length in taken.items())
            taken[start] = size
    for start in taken:
        ranges.give(start)
    assert ranges.take(16 * GRAIN) == GRAIN


def test_a_range_that_does_not_fit_is_refused(arena: Any) -> None:
    ranges = arena.Ranges(GRAIN, 2 * GRAIN)
    assert ranges.take(3 * GRAIN) == 0
    assert ranges.take(1) == GRAIN
    assert ranges.take(2 * GRAIN) == 0
    assert ranges.take(GRAIN) == 2 * GRAIN


def test_the_page_shows_the_data_that_lie_beside_it() -> None:
    docs = TASK.parents[1] / "docs" / "tasks"
    compare = load(TASK / "compare.py", "triton_cumsum_compare")
    data = [json.loads((docs / "triton_cumsum" / f"{name}.json").read_text()) for name in ("modelled", "measured")]
    modelled, measured = (entry["milliseconds"] for entry in data)
    page = (docs / "triton_cumsum.md").read_text()
    assert compare.markdown(modelled, measured) in page
    assert compare.summary(modelled, measured) in page


def test_ranks_and_the_worst_ratio() -> None:
    compare = load(TASK / "compare.py", "triton_cumsum_compare")
    modelled, measured = {"reference": 1.0, "baseline": 2.0, "three_pass": 3.0}, {"reference": 3.0, "baseline": 2.0}
    said = compare.summary(modelled, measured)
    assert said == "worst ratio 3.00 (`reference`), rank correlation -1.00"
