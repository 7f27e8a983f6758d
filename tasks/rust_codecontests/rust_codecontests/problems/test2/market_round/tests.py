# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: the cheapest order of stalls whose prices rise."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "2\n1 5\n2 1\n0 10\n3 0\n",
    "3\n4 4 4\n1 2 3\n0 1 0\n1 0 0\n1 1 0\n",
)

Row = list[int]


def case(gate: Row, goods: Row, ways: list[Row]) -> str:
    """Return the input of a market."""
    return "\n".join([str(len(gate)), *(" ".join(map(str, row)) for row in (gate, goods, *ways))]) + "\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    most = 10**9
    yield case([1], [0], [[0]])
    yield case([most], [most], [[0]])
    yield case([1, 1], [5, 7], [[0, 0], [0, 0]])
    yield case([3, 1], [0, 0], [[0, 0], [9, 0]])
    yield case([1, 100, 100], [1, 1, 1], [[0, 1, 50], [1, 0, 50], [1, 1, 0]])
    yield case([5] * 4, [1, 10, 100, 1000], [[0 if i == j else 1 for j in range(4)] for i in range(4)])
    yield case([5] * 5, [0] * 5, [[0 if j != i + 1 else 7 for j in range(5)] for i in range(5)])
    yield case([most] * 14, [most] * 14, [[0 if i == j else most for j in range(14)] for i in range(14)])
    yield case([1] * 12, list(range(12)), [[0 if i == j else (i * j) % 7 + 1 for j in range(12)] for i in range(12)])


def draw(rng: random.Random, stalls: int, most: int, missing: float) -> str:
    """Return a random market in which some of the ways are missing."""
    ways = [
        [0 if i == j or rng.random() < missing else rng.randint(1, most) for j in range(stalls)] for i in range(stalls)
    ]
    gate, goods = ([rng.randint(1, most) for _ in range(stalls)] for _ in range(2))
    return case(gate, [good // rng.choice((1, stalls, 5)) for good in goods], ways)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for stalls, most, missing in (
        (4, 20, 0.2),
        (7, 100, 0.3),
        (9, 10**9, 0.1),
        (11, 10**6, 0.5),
        (12, 10**9, 0.0),
        (13, 10**4, 0.3),
        (14, 10**9, 0.2),
    ):
        yield draw(rng, stalls, most, missing)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return draw(rng, rng.randint(1, 5), 9, rng.choice((0.1, 0.5)))


def read(text: str) -> list[Row]:
    """Return the rows of numbers after the first one."""
    return [list(map(int, line.split())) for line in text.splitlines()[1:]]


def solve(text: str) -> str:
    """Find the cheapest way to have been at a set of stalls, by the last one."""
    gate, goods, *ways = read(text)
    stalls = range(len(gate))
    costs: dict[int, dict[int, int]] = {1 << stall: {stall: gate[stall] + goods[stall]} for stall in stalls}
    for number in range(2, len(gate) + 1):
        larger: dict[int, dict[int, int]] = {}
        for visited, by_last in costs.items():
            for stall in stalls:
                if visited >> stall & 1:
                    continue
                sums = [cost + ways[last][stall] for last, cost in by_last.items() if ways[last][stall]]
                if sums:
                    cost = min(sums) + number * goods[stall]
                    larger.setdefault(visited | 1 << stall, {})[stall] = cost
        costs = larger
    return str(min((cost for by_last in costs.values() for cost in by_last.values()), default=-1))


def brute(text: str) -> str:
    """Try all orders."""
    gate, goods, *ways = read(text)
    best = -1
    for order in itertools.permutations(range(len(gate))):
        steps = [ways[i][j] for i, j in itertools.pairwise(order)]
        cost = gate[order[0]] + sum(steps) + sum(k * goods[stall] for k, stall in enumerate(order, 1))
        if 0 not in steps and (best < 0 or cost < best):
            best = cost
    return str(best)
