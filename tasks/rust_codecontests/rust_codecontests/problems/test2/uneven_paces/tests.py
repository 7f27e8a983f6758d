# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: strides that differ from the last one, and wet steps."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 9\n", "4 3\n", "13 6\n")

MODULUS = 10**9 + 7


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield from (
        "1 2\n",
        "2 2\n",
        "3 3\n",
        "6 3\n",
        "9 4\n",
        "20 2\n",
        "30 1000000000\n",
        "100 7\n",
        "1000000 1000000000\n",
        "1000000 7\n",
        "999999 999998\n",
        "1000000 999999\n",
        "1000000 1000000\n",
    )


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for steps, wet in ((15, 9), (40, 8), (200, 50), (5000, 300), (80_000, 9), (900_000, 10**6), (600_000, 11)):
        yield f"{rng.randint(steps // 2, steps)} {rng.randint(4, wet)}\n"


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return f"{rng.randint(1, 11)} {rng.randint(2, 12)}\n"


def solve(text: str) -> str:
    """Count the ways to each step by the length of the last stride."""
    steps, wet = map(int, text.split())
    recent = [(0, 0, 0, 0), (0, 0, 0, 0), (1, 0, 0, 0)]  # of the last three steps: by the last stride, 0 for none
    for step in range(1, steps + 1):
        now = [0]
        for stride in (1, 2, 3):
            before = recent[-stride]
            dry = step % wet or step == steps
            now.append((sum(before) - before[stride]) % MODULUS if dry else 0)
        recent = [recent[1], recent[2], (now[0], now[1], now[2], now[3])]
    return str(sum(recent[-1]) % MODULUS)


def brute(text: str) -> str:
    """Try all sequences of strides."""
    steps, wet = map(int, text.split())
    count = 0
    for strides in range(1, steps + 1):
        for way in itertools.product((1, 2, 3), repeat=strides):
            if sum(way) == steps and all(a != b for a, b in itertools.pairwise(way)):
                count += all(step % wet for step in list(itertools.accumulate(way))[:-1])
    return str(count % MODULUS)
