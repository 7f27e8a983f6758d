"""Test raw scores of losses."""

from __future__ import annotations

import math

import pytest

from re_bench.errors import InvalidSubmissionError, ReBenchError
from re_bench.scoring.language import log_above_floor


def test_raw_score_is_the_logarithm_above_the_floor() -> None:
    assert log_above_floor(2.3, 1.3) == pytest.approx(0, abs=1e-12)
    assert log_above_floor(1.3 + math.e, 1.3) == pytest.approx(1)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_invalid(loss: float) -> None:
    with pytest.raises(InvalidSubmissionError, match="not finite"):
        log_above_floor(loss, 1.0)


@pytest.mark.parametrize("loss", [0.5, 1.0])
def test_a_loss_at_or_below_the_floor_is_an_internal_error(loss: float) -> None:
    with pytest.raises(ReBenchError, match=r"is not above the floor of 1") as caught:
        log_above_floor(loss, 1.0)
    assert not isinstance(caught.value, InvalidSubmissionError)
