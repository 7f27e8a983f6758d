"""The reference solution, reward 1: the gradient depends only on how often each pair occurs, so count the pairs once.

$canary
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

LETTERS = "abcdefgh"
STEPS = 60
RATE = 4.0


def main():
    """Train on the text in the file that the command line names."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    found = Counter(pairwise(text))
    counts = [[found[current, following] for following in LETTERS] for current in LETTERS]
    weights = [[0.0] * len(LETTERS) for _ in LETTERS]
    for _step in range(STEPS):
        for row, seen in zip(weights, counts, strict=True):
            exponentials = [math.exp(weight) for weight in row]
            share = sum(seen) / sum(exponentials)
            for letter, exponential in enumerate(exponentials):
                row[letter] -= RATE * (share * exponential - seen[letter]) / (len(text) - 1)
    print(json.dumps(weights))


if __name__ == "__main__":
    main()
