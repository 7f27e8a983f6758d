"""Test the texts and the check of weights; ``re-bench validate`` tests the solutions."""

from __future__ import annotations

import pytest

from re_bench.errors import InvalidSubmissionError
from task_name import grading
from task_name.profiles import PROFILES

SIZE = PROFILES["cpu"]


def test_texts_depend_on_the_seed_only() -> None:
    text = grading.draw_text(SIZE, 1)
    assert len(text) == SIZE.letters
    assert set(text) <= set(grading.LETTERS)
    assert text == grading.draw_text(SIZE, 1) != grading.draw_text(SIZE, 2)


@pytest.mark.parametrize("printed", ["", "[[1.0]]", "[[1.0, NaN]]", "[[1.0, 2.1]]", "[[1.0, 2.0], []]", "[" * 9999])
def test_wrong_weights_are_rejected(printed: str) -> None:
    with pytest.raises(InvalidSubmissionError):
        grading.check_weights(grading.parse_weights(printed), [[1.0, 2.0]], SIZE.tolerance)
    grading.check_weights(grading.parse_weights("[[1, 2.0000001]]"), [[1.0, 2.0]], SIZE.tolerance)
