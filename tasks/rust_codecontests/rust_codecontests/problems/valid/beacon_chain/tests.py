# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: the cheapest chain of exactly K beacons of two kinds."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "4 3 3 5\n0 2 4\n2 1 5\n5 1 9\n6 3 8\n",
    "2 1 5 5\n1 1 1\n2 1 1\n",
    "3 3 10 10\n0 1 7\n1 1 7\n2 1 7\n",
)

BIG = 10**9
NEVER = 10**18


def _text(beacons: int, bronze: int, silver: int, places: list[tuple[int, int, int]]) -> str:
    """The input that describes the places."""
    lines = [f"{len(places)} {beacons} {bronze} {silver}", *(" ".join(map(str, place)) for place in places)]
    return "\n".join(lines) + "\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield _text(1, 1, 1, [(0, 9, 4)])
    yield _text(1, 1, 1, [(BIG, 3, 4)])
    yield _text(2, 5, 5, [(0, 1, 100), (5, 1, 100)])
    yield _text(2, 4, 5, [(0, 1, 100), (5, 1, 100)])
    yield _text(2, 4, 4, [(0, 1, 100), (5, 1, 100)])
    yield _text(3, 1, 1, [(i, BIG, BIG) for i in range(5)])
    yield _text(3000, 1, 1, [(i, BIG, BIG) for i in range(3000)])
    yield _text(1500, BIG, BIG, [(i * 300000, BIG - i * i, BIG - i * 3) for i in range(3000)])
    yield _text(1000, 3, 7, [(i, 1 + i * i % 1000, 500 + i % 7) for i in range(2000)])
    yield _text(2, BIG, 1, [(0, 5, 1), (BIG // 2, 1, 1), (BIG, 7, 9)])
    yield _text(3, 4, 4, [(0, 1, 9), (1, 1, 1), (4, 1, 9), (8, 1, 9)])
    yield _text(3, 100, 2, [(0, 1, 9), (50, 1, 3), (51, 1, 9), (52, 2, 9)])
    yield _text(5, 10, 1, [(i, 1, 10) for i in range(5)])


def _random(rng: random.Random, count: int, beacons: int, reach: int, top: int) -> str:
    """Random places, about ten units apart."""
    places = []
    position = rng.randint(0, 5)
    for _ in range(count):
        places.append((position, rng.randint(1, top), rng.randint(1, top)))
        position += rng.randint(1, 19)
    return _text(beacons, rng.randint(1, reach), rng.randint(1, reach), places)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, beacons, reach, top in (
        (6, 3, 60, 9),
        (12, 6, 80, 20),
        (40, 15, 150, 100),
        (100, 60, 100, 10**4),
        (400, 100, 300, 10**9),
        (1000, 300, 200, 10**6),
        (2000, 150, 1200, 10**9),
        (3000, 2700, 5000, 10**9),
    ):
        yield _random(rng, count, beacons, reach, top)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    count = rng.randint(1, 6)
    return _random(rng, count, rng.randint(1, count), 40, 9)


def _parse(text: str) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    """Number of beacons, both reaches and the places."""
    numbers = list(map(int, text.split()))
    places = list(zip(numbers[4::3], numbers[5::3], numbers[6::3], strict=True))
    return numbers[1], numbers[2], numbers[3], places


def solve(text: str) -> str:
    """From place N backwards; queues hold the cheapest rest within reach."""
    beacons, reach_bronze, reach_silver, places = _parse(text)
    count = len(places)
    # bronze[i], silver[i]: cheapest end of the chain that begins at place i with a beacon of that kind.
    bronze, silver = [NEVER] * count, [NEVER] * count
    bronze[-1], silver[-1] = places[-1][1:]
    for built in range(2, beacons + 1):
        either = list(map(min, bronze, silver))
        after_bronze: deque[int] = deque()
        after_silver: deque[int] = deque()
        next_bronze, next_silver = [NEVER] * count, [NEVER] * count
        # The chain still needs beacons - built places to the left.
        for i in range(count - built, beacons - built - 1, -1):
            position, cost_bronze, cost_silver = places[i]
            _push(after_bronze, silver, i + 1)
            _push(after_silver, either, i + 1)
            while after_bronze and places[after_bronze[0]][0] - position > reach_bronze:
                after_bronze.popleft()
            while after_silver and places[after_silver[0]][0] - position > reach_silver:
                after_silver.popleft()
            if after_bronze:
                next_bronze[i] = cost_bronze + silver[after_bronze[0]]
            if after_silver:
                next_silver[i] = cost_silver + either[after_silver[0]]
        bronze, silver = next_bronze, next_silver
    best = min(bronze[0], silver[0])
    return str(best) if best < NEVER else "-1"


def _push(queue: deque[int], costs: list[int], index: int) -> None:
    """Add an index to a queue whose costs grow from front to back."""
    cost = costs[index]
    if cost >= NEVER:
        return
    while queue and costs[queue[-1]] >= cost:
        queue.pop()
    queue.append(index)


def brute(text: str) -> str:
    """Try all choices of places and kinds."""
    beacons, reach_bronze, reach_silver, places = _parse(text)
    costs = []
    for chosen in itertools.combinations(places, beacons):
        if chosen[0] != places[0] or chosen[-1] != places[-1]:
            continue
        gaps = [b[0] - a[0] for a, b in itertools.pairwise(chosen)]
        for kinds in itertools.product("bs", repeat=beacons):
            reaches = [reach_bronze if kind == "b" else reach_silver for kind in kinds[:-1]]
            if "bb" not in "".join(kinds) and all(g <= r for g, r in zip(gaps, reaches, strict=True)):
                costs.append(sum(p[1] if kind == "b" else p[2] for p, kind in zip(chosen, kinds, strict=True)))
    return str(min(costs, default=-1))
