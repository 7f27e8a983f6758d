# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Bookings take the free desk of the smallest number: refusals and the busiest desk."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5 2 1\n5 7\n0 4\n1 3\n2 9\n8 9\n",
    "4 3 0\n10 20\n0 10\n0 5\n7 9\n",
)

Wish = tuple[int, int]


def _text(wishes: list[Wish], m: int, c: int) -> str:
    """The input of these wishes."""
    return f"{len(wishes)} {m} {c}\n" + "".join(f"{s} {e}\n" for s, e in wishes)


def private() -> Iterator[str]:
    """Corner cases: one wish, one desk, just in time, ties, far more desks than wishes, the limits."""
    yield _text([(0, 1)], 1, 0)
    yield _text([(0, 4), (4, 8), (8, 9)], 1, 0)
    yield _text([(0, 4), (6, 8), (10, 11)], 1, 2)
    yield _text([(0, 4), (6, 8), (10, 11)], 1, 3)
    yield _text([(5, 6), (5, 9), (5, 7), (6, 7), (7, 8), (9, 10)], 2, 0)
    yield _text([(3, 5), (3, 4), (3, 9), (0, 1), (9, 10), (5, 6)], 3, 1)
    yield _text([(20, 30), (0, 10), (12, 14), (0, 11)], 2, 1)
    yield _text([(0, 3), (1, 2), (3, 9), (4, 5), (5, 6)], 2, 0)
    yield _text([(0, 5), (0, 2), (6, 7)], 4, 0)
    yield _text([(0, 2 * 10**9)] * 14000, 10**9, 10**9)
    yield _text([(i, 10**9 + i) for i in range(14000)], 13999, 10**9)
    yield _text([(i * 100000, i * 100000 + 10**9) for i in range(12000)], 7000, 5 * 10**8)


def generated(rng: random.Random) -> Iterator[str]:
    """Random wishes of growing number."""
    for n, m, c, end, length in (
        (8, 2, 1, 20, 6),
        (50, 4, 3, 200, 20),
        (700, 10, 0, 5000, 60),
        (4000, 300, 40, 10**5, 9000),
        (13000, 60, 10**6, 10**9, 5 * 10**6),
        (13000, 10**9, 10**8, 10**9, 5 * 10**7),
        (13000, 5, 1, 10**9, 10**5),
    ):
        wishes = []
        for _ in range(n):
            start = rng.randrange(end)
            wishes.append((start, start + rng.randint(1, length)))
        yield _text(wishes, m, c)


def small(rng: random.Random) -> str:
    """At most eight wishes."""
    wishes = []
    for _ in range(rng.randint(1, 8)):
        start = rng.randrange(12)
        wishes.append((start, start + rng.randint(1, 5)))
    return _text(wishes, rng.randint(1, 4), rng.randint(0, 2))


def solve(text: str) -> str:
    """A heap of busy desks and one of free ones; a new desk is set up only when it is needed."""
    n, m, c, *rest = map(int, text.split())
    wishes = sorted((rest[2 * i], i, rest[2 * i + 1]) for i in range(n))
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    uses: list[int] = []
    refused = 0
    for start, _, end in wishes:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free and len(uses) < m:
            free.append(len(uses))
            uses.append(0)
        if free:
            desk = heapq.heappop(free)
            uses[desk] += 1
            heapq.heappush(busy, (end + c, desk))
        else:
            refused += 1
    return f"{refused} {uses.index(max(uses)) + 1} {max(uses)}\n"


def brute(text: str) -> str:
    """Minute by minute, with a list of desks and the minutes of work left at each."""
    n, m, c, *rest = map(int, text.split())
    left = [0] * m
    uses = [0] * m
    for minute in range(max(rest) + 1):
        for i in range(n):
            if rest[2 * i] == minute and 0 in left:
                desk = left.index(0)
                left[desk] = rest[2 * i + 1] - minute + c
                uses[desk] += 1
        left = [max(0, minutes - 1) for minutes in left]
    most = max(uses)
    return f"{n - sum(uses)} {uses.index(most) + 1} {most}\n"
