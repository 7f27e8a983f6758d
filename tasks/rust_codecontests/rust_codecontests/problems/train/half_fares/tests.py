# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: ferries at half price, but never twice in a row."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

HARBOURS = 3000
FERRIES = 12_000
VOUCHERS = 8
DEAREST = 10**9

Ferry = tuple[int, int, int]

PUBLIC: tuple[str, ...] = (
    "4 4 2\n1 2 9\n2 3 8\n3 4 7\n1 4 30\n",
    "3 3 1\n1 2 4\n2 3 4\n1 3 11\n",
    "3 1 2\n1 2 5\n",
)


def text_of(n: int, vouchers: int, ferries: list[Ferry]) -> str:
    """One input."""
    return f"{n} {len(ferries)} {vouchers}\n" + "".join(f"{a} {b} {w}\n" for a, b, w in ferries)


def some_text(rng: random.Random, n: int, m: int, vouchers: int, *, reach: int, dearest: int) -> str:
    """Random ferries between near harbours; numbers other than 1 and n are mixed afterwards."""
    names = [1, *rng.sample(range(2, n), n - 2), n]
    ferries: list[Ferry] = []
    while len(ferries) < m:
        a = rng.randrange(n)
        b = min(n - 1, max(0, a + rng.randint(-reach, reach)))
        if a != b:
            ferries.append((names[a], names[b], rng.randint(0, dearest * abs(a - b) // reach)))
    return text_of(n, vouchers, ferries)


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = HARBOURS
    line = [(i, i + 1, DEAREST) for i in range(1, n)]
    yield text_of(1, 3, [])
    yield text_of(2, 0, [])
    yield text_of(2, 0, [(1, 2, 7)])
    yield text_of(2, 8, [(2, 1, 7)])
    yield text_of(2, 1, [(1, 2, 0)])
    yield text_of(2, 1, [(1, 2, 1)])
    yield text_of(2, 2, [(1, 2, 9), (2, 1, 5), (1, 2, 6)])
    yield text_of(3, 2, [(1, 2, 10), (2, 3, 10)])
    yield text_of(3, 2, [(1, 2, 10), (2, 3, 10), (1, 3, 16)])
    yield text_of(4, 2, [(1, 2, 100), (2, 4, 100), (2, 3, 0)])
    yield text_of(4, 2, [(1, 2, 100), (2, 4, 100), (2, 3, 5)])
    yield text_of(5, 1, [(1, 2, 1), (2, 3, 10), (3, 5, 1), (1, 4, 5), (4, 5, 6)])
    yield text_of(5, 3, [(1, 2, 8), (2, 3, 1), (3, 4, 9), (4, 5, 9), (1, 3, 12)])
    yield text_of(n, VOUCHERS, line)
    yield text_of(n, VOUCHERS, [(a, b, w - a * a % 997) for a, b, w in line[::-1]])
    ladder = [(i, i + step, 10 * step + i * 7 % 5) for i in range(1, n - 4) for step in (1, 2, 3, 4)]
    yield text_of(n, VOUCHERS, [*ladder[: FERRIES - 4], *[(i, i + 1, 3) for i in range(n - 4, n)]])
    yield text_of(n, VOUCHERS, [(1 + i % (n - 1), 1 + (i * 3 + 1) % (n - 1), i) for i in range(n)][2:])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, m, vouchers, reach, dearest in (
        (5, 8, 1, 3, 20),
        (10, 25, 2, 4, 50),
        (100, 300, 3, 10, 1000),
        (800, 3000, 5, 12, DEAREST),
        (HARBOURS, FERRIES, VOUCHERS, 6, DEAREST),
        (HARBOURS, FERRIES, 2, HARBOURS, DEAREST),
        (HARBOURS, FERRIES, VOUCHERS, 60, 100),
    ):
        yield some_text(rng, n, m, vouchers, reach=reach, dearest=dearest)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(2, 5)
    return some_text(rng, n, rng.randint(0, 7), rng.randint(0, 3), reach=rng.randint(1, 4), dearest=12)


def parse(text: str) -> tuple[int, int, list[Ferry]]:
    """Number of harbours, vouchers and ferries (harbours from 0) of an input."""
    numbers = list(map(int, text.split()))
    n, m, vouchers = numbers[:3]
    rows = [numbers[i : i + 3] for i in range(3, 3 + 3 * m, 3)]
    return n, vouchers, [(a - 1, b - 1, w) for a, b, w in rows]


def solve(text: str) -> str:
    """Dijkstra over harbour, vouchers used and whether the last ride used one."""
    n, vouchers, ferries = parse(text)
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b, w in ferries:
        near[a].append((b, w))
        near[b].append((a, w))
    queue = [(0, 0, 0, 0)]
    settled: set[tuple[int, int, int]] = set()
    while queue:
        coins, used, last, harbour = heapq.heappop(queue)
        if harbour == n - 1:
            return f"{coins} {used}\n"
        if (used, last, harbour) in settled:
            continue
        settled.add((used, last, harbour))
        for there, w in near[harbour]:
            if (used, 0, there) not in settled:
                heapq.heappush(queue, (coins + w, used, 0, there))
            if not last and used < vouchers and (used + 1, 1, there) not in settled:
                heapq.heappush(queue, (coins + w // 2, used + 1, 1, there))
    return "-1\n"


def brute(text: str) -> str:
    """The best coins after every number of rides, long enough to pass through every state."""
    n, vouchers, ferries = parse(text)
    rides = [(a, b, w) for a, b, w in ferries] + [(b, a, w) for a, b, w in ferries]
    best = {(0, 0, False): 0}
    found: list[tuple[int, int]] = []
    for _ in range(2 * n * (vouchers + 1) + 1):
        found += [(coins, used) for (harbour, used, _), coins in best.items() if harbour == n - 1]
        after: dict[tuple[int, int, bool], int] = {}
        for (harbour, used, last), coins in best.items():
            for a, b, w in rides:
                options = (
                    [(used, False, w)] if last or used == vouchers else [(used, False, w), (used + 1, True, w // 2)]
                )
                for spent, flag, price in options if a == harbour else ():
                    after[b, spent, flag] = min(after.get((b, spent, flag), coins + price), coins + price)
        best = after
    return " ".join(map(str, min(found, default=(-1,)))) + "\n"
