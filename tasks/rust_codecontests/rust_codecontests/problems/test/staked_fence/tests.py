# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Lattice points on the sides of a closed polygonal fence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4\n0 0\n4 0\n4 3\n0 3\n", "3\n-1 -1\n5 1\n1 5\n")
LIMIT = 10**9
Point = tuple[int, int]


def case(points: list[Point]) -> str:
    """Writes corners as an input."""
    return f"{len(points)}\n" + "".join(f"{x} {y}\n" for x, y in points)


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case([(0, 0), (1, 0)])
    yield case([(0, 0), (0, 2)])
    yield case([(-LIMIT, -LIMIT), (LIMIT, LIMIT)])
    yield case([(LIMIT, -LIMIT), (-LIMIT, LIMIT), (-LIMIT, -LIMIT), (LIMIT, LIMIT)])
    yield case([(0, 0), (6, 9), (0, 0), (6, 9), (12, 18)])
    yield case([(LIMIT, -LIMIT), (-LIMIT, LIMIT)] * 6000)
    yield case([(LIMIT, 0), (-LIMIT, 0)] * 5000 + [(0, LIMIT), (0, -LIMIT)] * 1000)
    yield case([(0, 0), (433494437, 267914296), (-1, -1), (701408733, -433494437)])
    yield case([(3, 7), (3, -7), (-3, -7), (-3, 7)])
    yield case([(0, 0), (-8, -12), (-8, 0), (4, -4), (10, -4)])
    yield case([(i % 2, i) for i in range(12000)])
    yield "3\n5 5 5\n\n-5 -5 5 "


def walk(rng: random.Random, count: int, top: int) -> list[Point]:
    """Draws corners with all neighbours different."""
    points: list[Point] = []
    while len(points) < count:
        scale = rng.choice((1, 1, 2, 3, max(1, top // 3)))
        point = (rng.randint(-(top // scale), top // scale) * scale, rng.randint(-(top // scale), top // scale) * scale)
        last = len(points) == count - 1
        if not (points and point == points[-1]) and not (last and point == points[0]):
            points.append(point)
    return points


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top in ((4, 5), (10, 20), (100, 100), (1000, 10**5), (5000, LIMIT), (12000, LIMIT), (12000, 50)):
        yield case(walk(rng, count, top))


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    return case(walk(rng, rng.randint(2, 5), 6))


def corners(text: str) -> list[Point]:
    """Reads the corners."""
    numbers = list(map(int, text.split()))
    return list(zip(numbers[1::2], numbers[2::2], strict=True))


def solve(text: str) -> str:
    """Uses the greatest common divisor of the side's differences."""
    points = corners(text)
    steps = [math.gcd(a[0] - b[0], a[1] - b[1]) for a, b in zip(points, points[1:] + points[:1], strict=True)]
    return f"{sum(steps)} {sum(1 for step in steps if step % 2 == 0)}"


def brute(text: str) -> str:
    """Tests each lattice point of a side's bounding box for lying on the side."""
    points = corners(text)
    stakes = gates = 0
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1], strict=True):
        inner = -2
        for x in range(min(ax, bx), max(ax, bx) + 1):
            for y in range(min(ay, by), max(ay, by) + 1):
                inner += (x - ax) * (by - ay) == (y - ay) * (bx - ax)
        stakes += inner + 1
        gates += inner % 2
    return f"{stakes} {gates}"
