"""The starting solution, reward 0: train a model that predicts the next letter of a text from the current letter.

``python train.py TEXT`` prints the model's weights as JSON: one row for each current letter, in each row the weight of
each next letter. The loss is the mean cross-entropy over all pairs of adjacent letters; each step is a step of gradient
descent on the whole text.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path

LETTERS = "abcdefgh"
STEPS = 60
RATE = 4.0


def main():
    """Train on the text in the file that the command line names."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    pairs = [(LETTERS.index(current), LETTERS.index(following)) for current, following in pairwise(text)]
    weights = [[0.0] * len(LETTERS) for _ in LETTERS]
    for _step in range(STEPS):
        gradient = [[0.0] * len(LETTERS) for _ in LETTERS]
        for current, following in pairs:
            exponentials = [math.exp(weight) for weight in weights[current]]
            total = sum(exponentials)
            for letter, exponential in enumerate(exponentials):
                gradient[current][letter] += exponential / total
            gradient[current][following] -= 1
        for row, changes in zip(weights, gradient, strict=True):
            for letter, change in enumerate(changes):
                row[letter] -= RATE * change / len(pairs)
    print(json.dumps(weights))


if __name__ == "__main__":
    main()
