# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: colourings of a row with blue stretches of even length."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("3 0\n", "2 2\n", "4 1\n")

MODULUS = 998244353
RED, BLUE = -2, -1


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield from (
        "1 0\n",
        "1 1000000000\n",
        "2 0\n",
        "4 0\n",
        "5 0\n",
        "6 1\n",
        "1000000 0\n",
        "1000000 1000000000\n",
        "1000000 998244353\n",
        "999999 998244352\n",
        "50 3\n",
        "2 1000000000\n",
        "100 0\n",
    )


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for length, colours in ((8, 5), (15, 9), (30, 100), (1000, 1000), (40000, 10**6), (700000, 10**9)):
        yield f"{rng.randint(length // 2 + 1, length)} {rng.randint(1, colours)}\n"


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return f"{rng.randint(1, 6)} {rng.randint(0, 2)}\n"


def solve(text: str) -> str:
    """Blue only in pairs of tiles: count by the first tile or pair, with the red rule."""
    length, colours = map(int, text.split())
    # free[i]: banners of i tiles; calm[i]: those that do not begin with red.
    free_before, free_now = 0, 1
    calm_now = 1
    for _ in range(length):
        calm = (colours * free_now + free_before) % MODULUS
        free = (calm + calm_now) % MODULUS
        free_before, free_now = free_now, free
        calm_now = calm
    return str(free_now)


def brute(text: str) -> str:
    """Try every banner and look at its stretches."""
    length, colours = map(int, text.split())
    count = 0
    for banner in itertools.product(range(RED, colours), repeat=length):
        stretches = [(tile, len(list(group))) for tile, group in itertools.groupby(banner)]
        reds_alone = all(size == 1 for tile, size in stretches if tile == RED)
        blues_even = all(size % 2 == 0 for tile, size in stretches if tile == BLUE)
        count += reds_alone and blues_even
    return str(count % MODULUS)
