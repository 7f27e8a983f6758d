# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: weighted crossings of ropes that have different colours."""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 10 3 1 7 3 101\n", "6 50 2 5 48271 0 2000000000\n")

PRIMES = (1_999_999_973, 998_244_353, 1_000_000_007)
Ropes = list[tuple[int, int, int, int]]


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield from (
        "1 1 1 0 0 0 1\n",
        "2 1000 5 17 48271 11 1999999973\n",
        "9 1 9 5 48271 7 1000000007\n",
        "300 1000000 1 3 48271 0 998244353\n",
        "300 4 1000 9 48271 5 998244353\n",
        "500 3 2 77 69621 5 1999999973\n",
        "2000 1000000000 3 8 69621 1 1999999973\n",
        "100000 1000000000 1000000000 123456 48271 99 1999999973\n",
        "100000 1000 2 99 48271 7 1999999973\n",
        "60000 1000000000 4 5 69621 123 1000000007\n",
        "200000 1 3 5 48271 17 1999999973\n",
    )


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for ropes, heights, colours in (
        (5, 20, 3),
        (40, 30, 4),
        (1000, 10**9, 2),
        (9000, 100, 50),
        (50_000, 10**6, 10**4),
        (120_000, 10**9, 3),
    ):
        yield draw(rng, rng.randint(ropes // 2 + 2, ropes), heights, colours)


def draw(rng: random.Random, ropes: int, heights: int, colours: int) -> str:
    """Return random numbers for so many ropes."""
    modulus = rng.choice(PRIMES)
    seed, factor, summand = (rng.randrange(10**5, modulus) for _ in range(3))
    return f"{ropes} {heights} {colours} {seed} {factor} {summand} {modulus}\n"


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return draw(rng, rng.randint(1, 7), rng.randint(1, 9), rng.randint(1, 4))


def ropes_of(text: str) -> Ropes:
    """Return the left height, right height, colour and weight of all ropes."""
    count, heights, colours, x, factor, summand, modulus = map(int, text.split())
    numbers = []
    for _ in range(4 * count):
        x = (x * factor + summand) % modulus
        numbers.append(x)
    rows = zip(*(numbers[part::4] for part in range(4)), strict=True)
    return [(left % heights, right % heights, colour % colours, w % 1000 + 1) for left, right, colour, w in rows]


def crossings(ropes: Ropes) -> tuple[int, int]:
    """Return how many ropes cross, of any colour, and their weight."""
    levels = sorted({right for _left, right, _colour, _weight in ropes})
    counts, weights = ([0] * (len(levels) + 1) for _ in range(2))
    number = total = 0
    all_weight = 0
    for before, (_left, right, _colour, weight) in enumerate(sorted(ropes)):
        level = place = bisect.bisect_left(levels, right) + 1
        count_below = weight_below = 0
        while place:
            count_below += counts[place]
            weight_below += weights[place]
            place &= place - 1
        number += before - count_below
        total += (all_weight - weight_below) * weight
        while level <= len(levels):
            counts[level] += 1
            weights[level] += weight
            level += level & -level
        all_weight += weight
    return number, total


def solve(text: str) -> str:
    """Subtract the crossings within each colour from all crossings."""
    ropes = ropes_of(text)
    number, total = crossings(ropes)
    by_colour = defaultdict(list)
    for rope in ropes:
        by_colour[rope[2]].append(rope)
    for part in by_colour.values():
        if len(part) > 1:
            own_number, own_total = crossings(part)
            number, total = number - own_number, total - own_total
    return f"{number} {total}"


def brute(text: str) -> str:
    """Look at every two ropes."""
    lanterns = [
        one[3] * other[3]
        for one, other in itertools.combinations(ropes_of(text), 2)
        if (one[0] - other[0]) * (one[1] - other[1]) < 0 and one[2] != other[2]
    ]
    return f"{len(lanterns)} {sum(lanterns)}"
