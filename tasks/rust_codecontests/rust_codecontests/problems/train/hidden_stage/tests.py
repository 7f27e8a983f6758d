# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Inversions with a least difference within a sliding window."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("6 2 2\n5 3 1 6 4 4\n", "3 10 1\n1 2 3\n")
TOP = 10**9
LARGEST = 27000


def case(k: int, d: int, heights: list[int]) -> str:
    """Writes an input."""
    return f"{len(heights)} {k} {d}\n{' '.join(map(str, heights))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case(1, 0, [7])
    yield case(TOP, 0, [7, 7, 7, 7])
    yield case(1, 0, [3, 3, 2, 2, 3])
    yield case(2, TOP - 1, [TOP, 1, 1, 1, TOP, TOP])
    yield case(5, 2 * TOP, [TOP, 1, TOP, 1, 1])
    yield case(5, 1500000000, [TOP - i for i in range(50)])
    yield case(5, 1147483648, [TOP, TOP - 1, 1, 1, TOP, 999999999])
    yield case(TOP, 0, [5] * LARGEST)
    yield case(LARGEST, 1, list(range(LARGEST, 0, -1)))
    yield case(LARGEST, 1, list(range(1, LARGEST + 1)))
    yield case(13000, 100, [TOP - 37 * i for i in range(LARGEST)])
    yield "5 3\n1\n9 8\n\n7 7\n1 "
    yield case(3, 1, [9, 1, 1, 1, 1, 9, 1, 1, 1, 1])


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, k, d in ((8, 6, 3, 1), (50, 20, 10, 0), (500, 1000, 60, 50), (5000, TOP, 5000, 10**8)):
        yield case(k, d, [rng.randint(1, top) for _ in range(count)])
    yield case(TOP, 1, [rng.randint(1, TOP) for _ in range(LARGEST)])
    yield case(13000, 1, [rng.randint(1, TOP) for _ in range(20000)])
    yield case(TOP, 500, [rng.randint(1, 1000) for _ in range(LARGEST)])
    yield case(300, 0, [rng.randint(1, 3) for _ in range(LARGEST)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    return case(rng.randint(1, 5), rng.randint(0, 3), [rng.randint(1, 6) for _ in range(rng.randint(1, 8))])


def solve(text: str) -> str:
    """Keeps the heights of the window sorted and finds the first that is tall enough by bisection."""
    _, k, d, *heights = map(int, text.split())
    window: list[int] = []
    whole, most, where = 0, 0, 1
    for place, height in enumerate(heights):
        if place > k:
            del window[bisect.bisect_left(window, heights[place - k - 1])]
        grief = len(window) - bisect.bisect_left(window, height + d)
        whole += grief
        if grief > most:
            most, where = grief, place + 1
        bisect.insort(window, height)
    return f"{whole} {where}"


def brute(text: str) -> str:
    """Looks at each pair."""
    n, k, d, *heights = map(int, text.split())
    grief = [sum(heights[i] - heights[j] >= d and j - i <= k for i in range(j)) for j in range(n)]
    return f"{sum(grief)} {grief.index(max(grief)) + 1}"
