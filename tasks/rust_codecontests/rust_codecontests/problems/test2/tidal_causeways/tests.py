# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: shortest journeys over causeways that can be entered now and then."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "4 4\n1 2 10 3 4\n2 4 10 5 1\n1 3 5 0 20\n4 3 7 6 2\n",
    "3 1\n1 2 4 1 1\n",
)

Way = tuple[int, int, int, int, int]


def case(islands: int, ways: list[Way]) -> str:
    """Return the input of some causeways."""
    return f"{islands} {len(ways)}\n" + "".join(" ".join(map(str, way)) + "\n" for way in ways)


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    most = 10**9
    yield case(2, [])
    yield case(2, [(2, 1, 1, 0, 1)])
    yield case(2, [(1, 2, most, most - 1, most), (1, 2, most, most - 2, most)])
    yield case(3, [(1, 3, 1, 0, 100), (1, 2, 7, 2, 3), (2, 3, 7, 5, 1)])
    yield case(3, [(1, 3, 1, 0, 100), (1, 2, 7, 2, 3), (3, 2, 7, 4, 1)])
    yield case(4, [(1, 2, 3, 0, 1), (2, 3, 3, 1, 1), (3, 4, 3, 2, 1), (1, 4, 1, 0, 4)])
    yield case(5, [(1, 2, 1, 0, 1), (4, 5, 1, 0, 1)])
    yield case(6000, [(k, k + 1, most, (k * 7919) % most, most) for k in range(1, 6000)])
    yield case(6000, [(k + 1, k, most, most - 1 - k, most) for k in range(1, 6000)])
    yield case(10_000, [(k, k + 1, 1, 0, 1) for k in range(1, 10_000)])


def draw(rng: random.Random, islands: int, count: int, most: int) -> str:
    """Return random causeways, more of them between islands of near numbers."""
    ways = []
    for _ in range(count):
        u = rng.randint(1, islands - 1)
        v = min(islands, u + rng.randint(1, 1 + islands // 8))
        period = rng.randint(1, most)
        ends = (u, v) if rng.randrange(2) else (v, u)
        ways.append((*ends, period, rng.randrange(period), rng.randint(1, most)))
    return case(islands, ways)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for islands, count, most in (
        (5, 9, 9),
        (30, 90, 30),
        (300, 1500, 100),
        (2000, 8000, 10**6),
        (3000, 6000, 10**9),
        (6000, 15_000, 99),
        (500, 6000, 10**9),
    ):
        yield draw(rng, rng.randint(islands // 2 + 1, islands), count, most)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return draw(rng, rng.randint(2, 5), rng.randint(0, 7), 6)


def read(text: str) -> tuple[int, list[Way]]:
    """Return the number of islands and the causeways."""
    (islands, _count), *rows = (tuple(map(int, line.split())) for line in text.splitlines())
    return islands, [(u, v, p, r, d) for u, v, p, r, d in rows]


def solve(text: str) -> str:
    """Settle islands in the order of the minutes in which they are reached."""
    islands, ways = read(text)
    from_island: list[list[tuple[int, int, int, int]]] = [[] for _ in range(islands + 1)]
    for u, v, p, r, d in ways:
        from_island[u].append((v, p, r, d))
        from_island[v].append((u, p, r, d))
    first: dict[int, int] = {}
    queue = [(0, 1)]
    while queue:
        minute, island = heapq.heappop(queue)
        if island in first:
            continue
        first[island] = minute
        for other, p, r, d in from_island[island]:
            if other not in first:
                heapq.heappush(queue, (minute + (r - minute) % p + d, other))
    return str(first.get(islands, -1))


def brute(text: str) -> str:
    """Go through the minutes, and send someone over every open causeway in each of them."""
    islands, ways = read(text)
    arrivals = {0: {1}}
    reached: set[int] = set()
    for minute in range(200):
        reached |= arrivals.get(minute, set())
        if islands in reached:
            return str(minute)
        for u, v, p, r, d in ways:
            if minute % p == r:
                for here, there in ((u, v), (v, u)):
                    if here in reached:
                        arrivals.setdefault(minute + d, set()).add(there)
    return "-1"
