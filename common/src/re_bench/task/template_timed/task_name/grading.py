"""The texts to train on, and the check of the trained weights."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from re_bench.errors import InvalidSubmissionError

if TYPE_CHECKING:
    from task_name.profiles import Size

__all__ = ["check_weights", "draw_text", "parse_weights"]

LETTERS = "abcdefgh"
_WEIGHTS = TypeAdapter(list[list[float]])


def draw_text(size: Size, seed: int) -> str:
    """Return a random text in which each letter depends on the letter before it."""
    draw = random.Random(seed)
    chances = {letter: [draw.random() for _ in LETTERS] for letter in LETTERS}
    text = [draw.choice(LETTERS)]
    for _ in range(size.letters - 1):
        text += draw.choices(LETTERS, chances[text[-1]])
    return "".join(text)


def parse_weights(printed: str) -> list[list[float]]:
    """Return the weights that a training script has printed.

    Raises:
        InvalidSubmissionError: if the output is not a list of lists of numbers.
    """
    try:
        return _WEIGHTS.validate_json(printed)
    except ValidationError:
        raise InvalidSubmissionError("train.py must print its weights, and nothing else, to stdout") from None


def check_weights(found: list[list[float]], expected: list[list[float]], tolerance: float) -> None:
    """Compare a submission's weights with the baseline's for the same text.

    Raises:
        InvalidSubmissionError: if a weight is missing or differs by more than ``tolerance``.
    """
    # CHANGE ME: what the program must compute. A program that computes less must never be valid.
    if [len(row) for row in found] != [len(row) for row in expected]:
        raise InvalidSubmissionError(f"train.py must print {len(expected)} rows of {len(expected)} weights")
    pairs = [pair for rows in zip(found, expected, strict=True) for pair in zip(*rows, strict=True)]
    if not all(abs(own - theirs) <= tolerance for own, theirs in pairs):  # also rejects NaN
        raise InvalidSubmissionError(f"the weights differ from the original script's by more than {tolerance:g}")
