# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Ramps with a plateau are added up: the highest segment and how many reach a height."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "6 2 4\n1 5 3\n2 4 2\n",
    "4 2 1\n2 3 4\n4 4 1\n",
)

Truck = tuple[int, int, int]


def _text(n: int, goal: int, trucks: list[Truck]) -> str:
    """The input of these trucks."""
    return f"{n} {len(trucks)} {goal}\n" + "".join(f"{left} {right} {h}\n" for left, right, h in trucks)


def private() -> Iterator[str]:
    """Corner cases: one segment, ways shorter than the ramp or just as long, the whole dyke, the limits."""
    yield _text(1, 0, [(1, 1, 1)])
    yield _text(5, 0, [(2, 3, 5)])
    yield _text(5, 1, [(2, 5, 4)])
    yield _text(5, 3, [(2, 5, 3), (1, 1, 5)])
    yield _text(8, 5, [(1, 8, 1), (1, 8, 8), (3, 8, 2), (8, 8, 8)])
    yield _text(9, 4, [(1, 4, 2), (5, 9, 9), (4, 6, 3), (2, 2, 1)])
    yield _text(500000, 10**9, [(1, 500000, 500000)] * 14000)
    yield _text(500000, 10**10, [(1, 500000, 1)])
    yield _text(500000, 5 * 10**9, [(i + 1, 500000 - i, 400000 + i) for i in range(12000)])
    yield _text(499999, 3000, [(499999 - i, 499999, i % 9 + 1) for i in range(10000)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random trucks on dykes of growing length."""
    for n, m, goal in (
        (12, 5, 4),
        (60, 20, 30),
        (1000, 200, 15000),
        (20000, 3000, 4 * 10**6),
        (300000, 6000, 10**8),
        (500000, 14000, 8 * 10**8),
    ):
        trucks = []
        for _ in range(m):
            left = rng.randint(1, n)
            trucks.append((left, rng.randint(left, n), rng.randint(1, rng.choice((n, n // 10)))))
        yield _text(n, goal, trucks)


def small(rng: random.Random) -> str:
    """At most eight segments."""
    n = rng.randint(1, 8)
    trucks = []
    for _ in range(rng.randint(1, 4)):
        left = rng.randint(1, n)
        trucks.append((left, rng.randint(left, n), rng.randint(1, n)))
    return _text(n, rng.randint(0, 8), trucks)


def solve(text: str) -> str:
    """Second differences, summed twice."""
    n, _, goal, *rest = map(int, text.split())
    second = [0] * (n + 3)
    for i in range(0, len(rest), 3):
        left, right, h = rest[i : i + 3]
        climb = min(h, right - left + 1)
        second[left] += 1
        second[left + climb] -= 1
        second[right + 1] -= climb
        second[right + 2] += climb
    heights = list(accumulate(accumulate(second)))[1 : n + 1]
    return f"{max(heights)} {sum(height >= goal for height in heights)}\n"


def brute(text: str) -> str:
    """Ask for each segment what each truck pours there."""
    n, _, goal, *rest = map(int, text.split())
    heights = []
    for segment in range(1, n + 1):
        amounts = [
            min(segment - rest[i] + 1, rest[i + 2]) for i in range(0, len(rest), 3) if rest[i] <= segment <= rest[i + 1]
        ]
        heights.append(sum(amounts))
    return f"{max(heights)} {len([height for height in heights if height >= goal])}\n"
