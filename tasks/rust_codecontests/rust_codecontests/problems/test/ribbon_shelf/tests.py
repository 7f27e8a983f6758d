# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Rows of two colours with a given number of bounded red groups."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("3\n4 3 2 3\n5 2 3 2\n3 1 3 1\n", "2\n6 4 3 6\n10 10 4 3\n")
MOD = 10**9 + 7
TOP = 300000
Shelf = tuple[int, int, int, int]


def case(shelves: list[Shelf]) -> str:
    """Writes an input."""
    return f"{len(shelves)}\n" + "".join(" ".join(map(str, shelf)) + "\n" for shelf in shelves)


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case([(0, 0, 0, 1), (0, 5, 0, 2), (0, 5, 1, 2), (5, 5, 0, 2), (0, 0, 1, 1)])
    yield case([(1, 0, 1, 1), (3, 0, 1, 2), (3, 0, 1, 3), (3, 0, 2, 3), (2, 0, 1, TOP)])
    yield case([(5, 4, 5, 1), (5, 3, 5, 1), (6, 4, 5, 1), (4, 4, 5, 1), (5, 5, 5, 1)])
    yield case([(TOP, TOP, TOP // 2, 2), (TOP, TOP, TOP // 2, 3), (TOP, TOP, 100000, 3), (TOP, TOP, 99999, 3)])
    yield case([(TOP, TOP, TOP // 3, 5), (TOP, TOP, TOP // 2, TOP), (TOP, TOP // 3, TOP // 4, 11)])
    yield case([(TOP, TOP, TOP, 1), (TOP, TOP - 1, TOP, 1), (TOP, TOP - 2, TOP, 1), (TOP, TOP, TOP, TOP)])
    yield case([(TOP, TOP, 150001, 2), (TOP, TOP, 200000, 2), (TOP, TOP, 1, TOP), (TOP, TOP, 1, TOP - 1)])
    yield case([(TOP, 0, 1, TOP), (TOP, 0, 0, TOP), (0, TOP, 0, 1), (1, TOP, 1, 1), (2, TOP, 2, 1), (2, TOP, 1, 2)])
    yield case([(70, 50, 30, 4), (71, 50, 30, 4), (120, 50, 30, 4), (121, 50, 30, 4), (119, 29, 30, 4)])
    yield "3\n9 9\n4 3 200\n300 100 5\n\n40000 30 2 39000 "


def shelf(rng: random.Random, top: int) -> Shelf:
    """Draws a shelf that has an arrangement most of the time."""
    red, blue = rng.randint(0, top), rng.randint(0, top)
    groups = rng.randint(0, min(red, blue + 1))
    least = -(-red // max(1, groups))
    return red, blue, groups, min(TOP, max(1, least + rng.choice((-1, 0, 1, 1, 2, 3, 5, least, 3 * least))))


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for top in (8, 30, 300, 5000, 50000, TOP, TOP):
        yield case([shelf(rng, top) for _ in range(8)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    return case([(rng.randint(0, 6), rng.randint(0, 5), rng.randint(0, 4), rng.randint(1, 4)) for _ in range(2)])


@functools.cache
def factorials() -> tuple[list[int], list[int]]:
    """Returns the factorials and their inverses."""
    fact = list(itertools.accumulate(range(1, TOP + 2), lambda a, b: a * b % MOD, initial=1))
    down = itertools.accumulate(range(TOP + 1, 0, -1), lambda a, b: a * b % MOD, initial=pow(fact[-1], -1, MOD))
    return fact, list(down)[::-1]


def choose(n: int, k: int) -> int:
    """Returns the binomial coefficient."""
    fact, inverse = factorials()
    return fact[n] * inverse[k] % MOD * inverse[n - k] % MOD if 0 <= k <= n else 0


def arrangements(red: int, blue: int, groups: int, most: int) -> int:
    """Chooses the gaps, and fills them by inclusion and exclusion over the groups that are too long."""
    if groups == 0 or red == 0:
        return int(groups == red == 0)
    total = 0
    for long in range(groups + 1):
        left = red - long * most - 1
        if left < groups - 1:
            break
        total += (-1) ** long * choose(groups, long) * choose(left, groups - 1)
    return choose(blue + 1, groups) * total % MOD


def solve(text: str) -> str:
    """Counts by a closed sum."""
    numbers = list(map(int, text.split()))
    return "\n".join(str(arrangements(*numbers[i : i + 4])) for i in range(1, 4 * numbers[0], 4))


def brute(text: str) -> str:
    """Walks along the row, knowing the numbers of red and blue books, of groups, and the length of the last group."""
    numbers = list(map(int, text.split()))
    answers = []
    for i in range(1, 4 * numbers[0], 4):
        red, blue, groups, most = numbers[i : i + 4]

        @functools.cache
        def ways(reds: int, blues: int, left: int, run: int, most: int = most) -> int:
            """Counts the ways to put the remaining books."""
            if reds == blues == 0:
                return int(left == 0)
            total = ways(reds, blues - 1, left, 0, most) if blues else 0
            if reds and run:
                total += ways(reds - 1, blues, left, run + 1, most) if run < most else 0
            elif reds and left:
                total += ways(reds - 1, blues, left - 1, 1, most)
            return total

        answers.append(ways(red, blue, groups, 0) % MOD)
    return "\n".join(map(str, answers))
