# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""The k-th smallest distance between points of different groups on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "4 2\n1 7\n4 7\n9 3\n2 5\n",
    "5 6\n10 1\n0 2\n10 2\n3 1\n3 3\n",
    "3 1\n5 8\n6 8\n-2 8\n",
)

Beacon = tuple[int, int]


def _text(beacons: list[Beacon], k: int) -> str:
    """The input of these beacons."""
    return f"{len(beacons)} {k}\n" + "".join(f"{x} {c}\n" for x, c in beacons)


def private() -> Iterator[str]:
    """Corner cases: one beacon, the same place, k on the edge, far apart, the limits."""
    yield _text([(3, 3)], 1)
    yield _text([(3, 3), (3, 4)], 1)
    yield _text([(-1500000000, 1), (1500000000, 10**9)], 1)
    yield _text([(-1500000000, 1), (1500000000, 10**9)], 2)
    yield _text([(0, 1), (0, 1), (0, 2), (5, 1), (5, 2), (5, 2)], 9)
    yield _text([(0, 1), (0, 1), (0, 2), (5, 1), (5, 2), (5, 2)], 10)
    yield _text([(0, 1), (0, 1), (0, 2), (5, 1), (5, 2), (5, 2)], 4)
    yield _text([(10, 1), (0, 2), (-1, 2), (-2, 2), (11, 1)], 3)
    yield _text([(i * 200000 - 14 * 10**8, i + 1) for i in range(14000)], 97993000)
    yield _text([((i * 7919 % 14000) * 200000 - 14 * 10**8, i % 2 + 1) for i in range(14000)], 49000000)
    yield _text([(i, 10**9) for i in range(14000)], 1)
    yield _text([(7, i % 10 + 1) for i in range(14000)], 50000000)


def generated(rng: random.Random) -> Iterator[str]:
    """Random beacons of growing number."""
    for n, span, companies, k in (
        (8, 20, 3, 9),
        (40, 100, 4, 200),
        (500, 10**6, 20, 30000),
        (4000, 10**9, 2, 10**6),
        (14000, 15 * 10**8, 12000, 9 * 10**7),
        (14000, 15 * 10**8, 2, 45 * 10**6),
    ):
        yield _text([(rng.randint(-span, span), rng.randint(1, companies)) for _ in range(n)], k)


def small(rng: random.Random) -> str:
    """At most seven beacons."""
    n = rng.randint(1, 7)
    return _text([(rng.randint(-6, 6), rng.randint(1, 3)) for _ in range(n)], rng.randint(1, 14))


def _close(places: list[int], d: int) -> int:
    """Pairs at distance at most d in a sorted list."""
    left = total = 0
    for right, place in enumerate(places):
        while place - places[left] > d:
            left += 1
        total += right - left
    return total


def solve(text: str) -> str:
    """Binary search on the distance; rivals are all close pairs less those of one company."""
    n, k, *rest = map(int, text.split())
    owned: dict[int, list[int]] = {}
    for i in range(n):
        owned.setdefault(rest[2 * i + 1], []).append(rest[2 * i])
    everything = sorted(rest[0 : 2 * n : 2])
    groups = [sorted(group) for group in owned.values()]

    def rivals(d: int) -> int:
        return _close(everything, d) - sum(_close(group, d) for group in groups)

    low, high = 0, everything[-1] - everything[0]
    if rivals(high) < k:
        return "-1\n"
    while low < high:
        middle = (low + high) // 2
        if rivals(middle) >= k:
            high = middle
        else:
            low = middle + 1
    return f"{low}\n"


def brute(text: str) -> str:
    """Write the list down and sort it."""
    n, k, *rest = map(int, text.split())
    beacons = [(rest[2 * i], rest[2 * i + 1]) for i in range(n)]
    distances = sorted(abs(x - y) for i, (x, c) in enumerate(beacons) for y, e in beacons[:i] if c != e)
    return f"{distances[k - 1] if k <= len(distances) else -1}\n"
