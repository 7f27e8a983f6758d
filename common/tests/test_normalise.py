import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from re_bench.normalise import How, aggregate, normalise

SCORES = st.floats(-1e6, 1e6)
ATTEMPTS = st.lists(st.none() | SCORES)
HOWS: list[How] = ["min", "max", "last"]


@st.composite
def anchors(draw: st.DrawFn) -> tuple[float, float]:
    """Two anchors far enough apart for rounding errors to be negligible."""
    starting = draw(SCORES)
    return starting, starting + draw(st.floats(1e-3, 1e6)) * draw(st.sampled_from([-1, 1]))


@given(anchors())
def test_anchors_map_to_zero_and_one(ends: tuple[float, float]) -> None:
    starting, reference = ends
    at_start = normalise(starting, *ends)
    assert at_start == 0.0
    assert math.copysign(1, at_start) == 1
    assert normalise(reference, *ends) == 1.0


@given(anchors(), st.floats(-10, 10))
def test_normalise_is_affine_and_unclipped(ends: tuple[float, float], reward: float) -> None:
    starting, reference = ends
    raw = starting + reward * (reference - starting)
    assert normalise(raw, *ends) == pytest.approx(reward, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("bad", [math.nan, -math.inf, np.float32("nan"), 10**400])
def test_non_finite_input_is_refused(bad: float) -> None:
    for arguments in ((bad, 1.0, 2.0), (0.5, bad, 2.0), (0.5, 1.0, bad)):
        with pytest.raises(ValueError, match="must be a finite number"):
            normalise(*arguments)
    with pytest.raises(ValueError, match="score must be a finite number"):
        aggregate([1.0, None, bad], "last")


def test_equal_anchors_and_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="starting and reference must differ"):
        normalise(0.0, 1.5, 1.5)
    for arguments in ((1e308, 0.0, 1e-300), (0.0, -1e308, 1e308), (1e308, -1e308, 0.0), (1.0, 0.0, 5e-324)):
        with pytest.raises(ValueError, match="must be a finite number, got"):
            normalise(*arguments)


@pytest.mark.parametrize("bad", [True, np.True_, "1", None, decimal.Decimal(1), 1j])
def test_non_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match="raw must be a number"):
        normalise(bad, 1, 2)
    if bad is not None:
        with pytest.raises(TypeError, match="score must be a number"):
            aggregate([bad], "min")


@pytest.mark.parametrize("number", [3, np.float32(3), np.float64(3), np.int64(3), Fraction(3)])
def test_real_numbers_become_floats(number: Any) -> None:
    assert type(normalise(number, 1, 5)) is float
    assert normalise(number, 1, 5) == 0.5


@given(ATTEMPTS)
@example([])
@example([None, None])
def test_aggregate_ignores_invalid_attempts(scores: list[float | None]) -> None:
    valid = [score for score in scores if score is not None]
    expected: dict[How, Any] = {"min": min, "max": max, "last": lambda some: some[-1]}
    for how in HOWS:
        assert aggregate(iter(scores), how) == (expected[how](valid) if valid else None)
    unknown: Any = "mean"
    with pytest.raises(ValueError, match="how must be one of min, max, last, got 'mean'"):
        aggregate(scores, unknown)
