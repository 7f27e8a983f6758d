# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: the cheapest place of a depot in a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

VILLAGES = 8000
FARMERS = 1000
DEAREST = 10**9
LONGEST = 10**6

Road = tuple[int, int, int]

PUBLIC: tuple[str, ...] = (
    "5\n1 2 3 4 5\n0 10 20 0 0\n1 2 3\n2 3 1\n3 4 2\n3 5 2\n",
    "4\n9 1 1 1\n0 5 0 0\n1 2 1\n2 3 1\n3 4 1\n",
)


def text_of(farmers: list[int], costs: list[int], roads: list[Road]) -> str:
    """One input."""
    head = f"{len(farmers)}\n{' '.join(map(str, farmers))}\n{' '.join(map(str, costs))}\n"
    return head + "".join(f"{a} {b} {length}\n" for a, b, length in roads)


def some_text(rng: random.Random, n: int, reach: int, dearest: int, longest: int) -> str:
    """A random valley; a small reach makes it deep."""
    names = list(range(1, n + 1))
    rng.shuffle(names)
    roads: list[Road] = []
    for i in range(1, n):
        ends = [names[i], names[rng.randint(max(0, i - reach), i - 1)]]
        rng.shuffle(ends)
        roads.append((ends[0], ends[1], rng.randint(1, longest)))
    rng.shuffle(roads)
    farmers = [rng.randint(0, min(FARMERS, longest)) for _ in range(n)]
    return text_of(farmers, [rng.randint(0, dearest) for _ in range(n)], roads)


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = VILLAGES
    line = [(i, i + 1, LONGEST) for i in range(1, n)]
    yield text_of([5], [7], [])
    yield text_of([5, 3], [7, 7], [(2, 1, 4)])
    yield text_of([5, 3], [9, 1], [(2, 1, 4)])
    yield text_of([2, 2], [6, 6], [(1, 2, 1)])
    yield text_of([9, 0, 0], [0, 50, 0], [(1, 2, 3), (2, 3, 3)])
    yield text_of([1, 1, 1, 1], [0, 4, 4, 0], [(4, 3, 2), (2, 3, 2), (1, 2, 2)])
    yield text_of([0, 0, 0, 0, 0], [3, 2, 2, 2, 1], [(1, 4, 9), (4, 3, 9), (3, 2, 9), (2, 5, 9)])
    yield text_of([1, 9, 1, 1, 1], [0, 0, 30, 0, 8], [(3, 1, 5), (3, 2, 5), (3, 5, 1), (5, 4, 2)])
    yield text_of([FARMERS] * n, [DEAREST] * n, line)
    yield text_of([FARMERS] * n, [DEAREST - i for i in range(n)], [(b, a, w) for a, b, w in line[::-1]])
    yield text_of([FARMERS] * n, [0] * n, [(n, i, LONGEST) for i in range(1, n)])
    yield text_of([0] * (n - 1) + [FARMERS], [0] * n, line)
    yield text_of([i % 3 for i in range(n)], [DEAREST - i * 99_991 for i in range(n)], [(a, b, 1) for a, b, _ in line])
    broom = [(i, i + 1, 3) for i in range(1, n // 2)] + [(n // 2, i, 1 + i % 5) for i in range(n // 2 + 1, n + 1)]
    yield text_of([i * i % 1001 for i in range(n)], [i * 7919 % 10**6 for i in range(n)], broom)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, reach, dearest, longest in (
        (5, 5, 10, 3),
        (9, 2, 20, 2),
        (100, 10, 500, 5),
        (1000, 1000, DEAREST, 10**5),
        (6000, 3, DEAREST, LONGEST),
        (VILLAGES, VILLAGES, DEAREST, 100),
        (VILLAGES, 40, 10**6, LONGEST),
    ):
        yield some_text(rng, n, reach, dearest, longest)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(1, 8)
    return some_text(rng, n, rng.randint(1, n), rng.choice((2, 30)), rng.choice((1, 5)))


def parse(text: str) -> tuple[list[int], list[int], list[Road]]:
    """Farmers, costs and roads (villages from 0) of an input."""
    numbers = list(map(int, text.split()))
    n = numbers[0]
    rows = [numbers[i : i + 3] for i in range(1 + 2 * n, len(numbers), 3)]
    return numbers[1 : 1 + n], numbers[1 + n : 1 + 2 * n], [(a - 1, b - 1, w) for a, b, w in rows]


def solve(text: str) -> str:
    """Moves the depot along the roads and corrects the sum of the drives."""
    farmers, costs, roads = parse(text)
    n = len(farmers)
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b, length in roads:
        near[a].append((b, length))
        near[b].append((a, length))
    parent, order, away = [(-1, 0)] * n, [0], [0] * n
    for village in order:
        for there, length in near[village]:
            if there != parent[village][0]:
                parent[there] = (village, length)
                away[there] = away[village] + length
                order.append(there)
    below = farmers[:]
    for village in order[:0:-1]:
        below[parent[village][0]] += below[village]
    drives = [sum(p * length for p, length in zip(farmers, away, strict=True))] * n
    for village in order[1:]:
        before, length = parent[village]
        drives[village] = drives[before] + (below[0] - 2 * below[village]) * length
    allowed = [i for i in range(n) if len(near[i]) != 1 or n == 1 + len(roads) == len("ab")]
    best, village = min((drives[i] + costs[i], i) for i in allowed)
    return f"{village + 1} {best}\n"


def brute(text: str) -> str:
    """All distances by repeated relaxation."""
    farmers, costs, roads = parse(text)
    n = len(farmers)
    sums: list[tuple[int, int]] = []
    for depot in range(n):
        away = {depot: 0}
        for _ in range(n):
            for a, b, length in roads:
                if a in away:
                    away.setdefault(b, away[a] + length)
                if b in away:
                    away.setdefault(a, away[b] + length)
        meeting = sum(1 for road in roads if depot in road[:2])
        if meeting > 1 or n <= len("ab"):
            sums.append((costs[depot] + sum(farmers[i] * away[i] for i in range(n)), depot + 1))
    return f"{min(sums)[1]} {min(sums)[0]}\n"
