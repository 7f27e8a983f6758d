# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Repeated levelling of the fullest and the emptiest jar."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 2 10\n9 1 4 4\n", "3 3 1\n10 0 5\n", "1 5 3\n8\n")
TOP = 2 * 10**9
LARGEST = 25000


def case(d: int, k: int, jars: list[int]) -> str:
    """Writes an input."""
    return f"{len(jars)} {d} {k}\n{' '.join(map(str, jars))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case(2, 300000, [0])
    yield case(2, 1, [TOP])
    yield case(2, 5, [7, 8])
    yield case(3, 5, [7, 10])
    yield case(10**9, 300000, [0, 10**9])
    yield case(10**9, 300000, [0, 10**9 - 1])
    yield case(2, 300000, [0, TOP])
    yield case(2, 300000, [TOP, TOP - 1, 1, 0, TOP, 3])
    yield case(2, 300000, [5] * LARGEST)
    yield case(2, 300000, [TOP * (i % 2) for i in range(LARGEST)])
    yield case(2, 300000, [0] * (LARGEST - 1) + [TOP])
    yield case(2, 300000, list(range(LARGEST)))
    yield case(2, 300000, [TOP - 9 * i for i in range(100)])
    yield case(4, 17, [1, 1, 1, 9, 9, 9, 5])
    yield "5 2\n100 6\n0\n\n3 3 11 "


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, d, k in ((5, 10, 2, 4), (30, 100, 3, 60), (300, 10**4, 5, 5000), (3000, 10**6, 2, 30000)):
        yield case(d, k, [rng.randint(0, top) for _ in range(count)])
    yield case(2, 300000, [rng.randint(0, TOP) for _ in range(20000)])
    yield case(2, 300000, [rng.randint(0, TOP) for _ in range(LARGEST)])
    yield case(1000, 300000, [int(rng.expovariate(1e-6)) for _ in range(10000)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    top = rng.choice((5, 30))
    return case(rng.randint(2, 5), rng.randint(1, 7), [rng.randint(0, top) for _ in range(rng.randint(1, 6))])


def solve(text: str) -> str:
    """Keeps the jars in two heaps; entries that are out of date are skipped."""
    _, d, k, *jars = map(int, text.split())
    low = [(drops, jar) for jar, drops in enumerate(jars)]
    high = [(-drops, jar) for jar, drops in enumerate(jars)]
    heapq.heapify(low)
    heapq.heapify(high)
    rounds = 0
    while True:
        while jars[low[0][1]] != low[0][0]:
            heapq.heappop(low)
        while jars[high[0][1]] != -high[0][0]:
            heapq.heappop(high)
        (y, empty), (x, full) = low[0], high[0]
        if rounds == k or -x - y < d:
            return f"{rounds} {y} {-x}"
        rounds += 1
        jars[empty] = (y - x) // 2
        jars[full] = y - x - jars[empty]
        for jar in (empty, full):
            heapq.heappush(low, (jars[jar], jar))
            heapq.heappush(high, (-jars[jar], jar))


def brute(text: str) -> str:
    """Sorts the jars in each round."""
    _, d, k, *jars = map(int, text.split())
    for done in range(k):
        jars.sort()
        if jars[-1] - jars[0] < d:
            return f"{done} {jars[0]} {jars[-1]}"
        whole = jars[0] + jars[-1]
        jars = [*jars[1:-1], whole // 2, whole - whole // 2]
    return f"{k} {min(jars)} {max(jars)}"
