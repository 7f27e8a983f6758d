# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Lids for jars: close the most jars with the smallest largest lid."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "3 4\n4 6\n5 1\n9 0\n6 10 5 20\n",
    "2 2\n3 1\n8 2\n7 11\n",
)

Jar = tuple[int, int]


def _text(jars: list[Jar], lids: list[int], per_line: int = 10**9) -> str:
    """The input of these jars and lids, with so many lids a line."""
    rows = [" ".join(map(str, lids[i : i + per_line])) for i in range(0, len(lids), per_line)]
    return f"{len(jars)} {len(lids)}\n" + "".join(f"{w} {r}\n" for w, r in jars) + "\n".join(rows) + "\n"


def private() -> Iterator[str]:
    """Corner cases: one of each, edges of the ranges, nested ranges, several lines, the limits."""
    yield _text([(5, 0)], [5])
    yield _text([(5, 3)], [9])
    yield _text([(5, 3)], [8, 8, 7, 9])
    yield _text([(10**9, 2 * 10**9)], [3 * 10**9])
    yield _text([(1, 100), (2, 1), (3, 1), (4, 1)], [2, 3, 4, 5], per_line=1)
    yield _text([(1, 100), (1, 2), (1, 1), (1, 0)], [1, 2, 3, 90, 80], per_line=2)
    yield _text([(5, 5), (5, 5), (5, 5)], [10, 5, 7, 6, 4, 11])
    yield _text([(3, 1), (50, 2)], [4, 9])
    yield _text([(2, 3), (2, 1), (1, 3)], [3])
    yield _text([(1, 1), (10, 1)], [20, 30, 12, 3])
    yield _text([(i + 1, 8999 - i) for i in range(9000)], list(range(9000, 0, -1)), per_line=100)
    yield _text([(10**9 - i, 2 * 10**9) for i in range(9000)], [3 * 10**9 - 2 * i for i in range(9000)])
    yield _text([(1, 2 * 10**9)] * 9000, [2 * 10**9 + 1 - i for i in range(9000)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random jars and lids of growing number."""
    for n, m, width, rim in (
        (6, 8, 15, 5),
        (40, 30, 60, 12),
        (500, 700, 1000, 30),
        (3000, 2500, 10**9, 10**6),
        (9000, 8000, 10**6, 300),
        (8000, 9000, 10**9, 10**6),
        (9000, 9000, 10**9, 2 * 10**9),
    ):
        jars = [(rng.randint(1, width), rng.randint(0, rim)) for _ in range(n)]
        yield _text(jars, [rng.randint(1, width + rim) for _ in range(m)])


def small(rng: random.Random) -> str:
    """At most five jars and lids."""
    jars = [(rng.randint(1, 9), rng.randint(0, 5)) for _ in range(rng.randint(1, 5))]
    return _text(jars, [rng.randint(1, 12) for _ in range(rng.randint(1, 5))])


def solve(text: str) -> str:
    """Lids from small to large, each for the fitting jar that can wait least."""
    n, _, *rest = map(int, text.split())
    jars = sorted((rest[2 * i], rest[2 * i] + rest[2 * i + 1]) for i in range(n))
    jars.reverse()
    ends: list[int] = []
    closed = largest = 0
    for lid in sorted(rest[2 * n :]):
        while jars and jars[-1][0] <= lid:
            heapq.heappush(ends, jars.pop()[1])
        while ends and ends[0] < lid:
            heapq.heappop(ends)
        if ends:
            heapq.heappop(ends)
            closed, largest = closed + 1, lid
    return f"{closed} {largest}\n"


def brute(text: str) -> str:
    """All assignments of lids to jars."""
    n, _, *rest = map(int, text.split())
    lids = rest[2 * n :]
    reached: set[tuple[int, ...]] = {()}
    for i in range(n):
        low, high = rest[2 * i], rest[2 * i] + rest[2 * i + 1]
        more = {(*used, j) for used in reached for j, lid in enumerate(lids) if low <= lid <= high and j not in used}
        reached |= {tuple(sorted(used)) for used in more}
    closed, largest = min((-len(used), max((lids[j] for j in used), default=0)) for used in reached)
    return f"{-closed} {largest}\n"
