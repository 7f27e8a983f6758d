# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Windows of bounded length whose maximum and minimum are close."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("6 2 3 2\n1 3 2 6 5 5\n", "5 1 4 0\n-4 -4 7 7 7\n", "5 2 5 2\n1 2 3 4 5\n")
TOP = 2 * 10**9
LARGEST = 24000


def case(a: int, b: int, d: int, heights: list[int]) -> str:
    """Writes an input."""
    return f"{len(heights)} {a} {b} {d}\n{' '.join(map(str, heights))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case(1, 1, 0, [5])
    yield case(2, 100000, TOP, [5])
    yield case(1, 100000, 0, [0] * LARGEST)
    yield case(12000, 24000, TOP, [-TOP if i % 2 else TOP for i in range(LARGEST)])
    yield case(1, 5, TOP - 1, [-TOP if i % 2 else TOP for i in range(1000)])
    yield case(2, 100, 1900000000, [TOP, -TOP, TOP, TOP, -TOP, -TOP, 0, TOP - 1])
    yield case(100000, 100000, 10, [1, 2, 3])
    yield case(1, 100000, 12000, list(range(LARGEST)))
    yield case(7, 7, 100, list(range(3000, 0, -1)))
    yield "7 2 4 3\n1 2\n3\n\n9 8 7\n6 "
    yield case(3, 3, 0, [4, 4, 4, 4, 5, 5, 5])
    yield case(1, 24000, 1, [i // 3 % 2 for i in range(LARGEST)])


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, d in ((8, 5, 2), (30, 20, 10), (300, 100, 60), (3000, 10**6, 10**6), (20000, 1000, 1990)):
        heights = [rng.randint(-top, top) for _ in range(count)]
        a, b = sorted((rng.randint(1, count // 4), rng.randint(1, count)))
        yield case(a, b, d, heights)
    for drift in (10, 10**5):
        level, heights = 0, []
        for _ in range(LARGEST):
            level = max(-TOP, min(TOP, level + rng.randint(-drift, drift)))
            heights.append(level)
        yield case(rng.randint(2, 50), rng.randint(5000, 20000), drift * 60, heights)


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    a, b = sorted((rng.randint(1, 6), rng.randint(1, 9)))
    return case(a, b, rng.randint(0, 5), [rng.randint(-4, 4) for _ in range(rng.randint(1, 9))])


def solve(text: str) -> str:
    """Keeps the smallest calm start of each end with two monotone deques."""
    n, a, b, d, *heights = map(int, text.split())
    high: deque[int] = deque()
    low: deque[int] = deque()
    start = total = 0
    for end in range(n):
        while high and heights[high[-1]] <= heights[end]:
            high.pop()
        while low and heights[low[-1]] >= heights[end]:
            low.pop()
        high.append(end)
        low.append(end)
        while heights[high[0]] - heights[low[0]] > d:
            start += 1
            if high[0] < start:
                high.popleft()
            if low[0] < start:
                low.popleft()
        total += max(0, end - a + 1 - max(start, end - b + 1) + 1)
    return str(total)


def brute(text: str) -> str:
    """Looks at each stretch."""
    n, a, b, d, *heights = map(int, text.split())
    total = 0
    for start in range(n):
        for end in range(start + a, min(n, start + b) + 1):
            total += max(heights[start:end]) - min(heights[start:end]) <= d
    return str(total)
