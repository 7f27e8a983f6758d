# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: edges of a tree that an odd number of paths use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 2\n1 2 2\n5 7 3\n3 4\n4 1\n", "3 3\n1 1\n4 6\n2 3\n3 2\n2 2\n")

Pairs = list[tuple[int, int]]


def case(parents: list[int], lengths: list[int], routes: Pairs) -> str:
    """Return the input of a tree and routes."""
    rows = (" ".join(map(str, row)) for row in (parents, lengths, *routes))
    return f"{len(parents) + 1} {len(routes)}\n" + "\n".join(rows) + "\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    most = 10**9
    yield case([1], [9], [(1, 1)])
    yield case([1], [9], [(2, 1)])
    yield case([1], [9], [(2, 1), (1, 2)])
    yield case([1, 1, 1], [3, 5, 5], [(2, 3)])
    yield case([1, 2, 3, 4], [1, 2, 4, 8], [(5, 1), (3, 3), (2, 4)])
    yield case([1, 2, 1, 4, 4], [1, 2, 4, 8, 16], [(3, 6), (5, 6), (3, 2), (1, 4)])
    yield case(list(range(1, 14_000)), [most] * 13_999, [(14_000, 1)])
    yield case(list(range(1, 25_000)), [7] * 24_999, [(25_000 - k, 1 + k) for k in range(9000)])
    yield case([1] * 15_000, [k % 97 + 1 for k in range(15_000)], [(k, k + 1) for k in range(1, 12_000, 3)])


def draw(rng: random.Random, huts: int, routes: int, most: int, span: int) -> str:
    """Return a random tree, with long ways if ``span`` is small, and random routes."""
    parents = [rng.randint(max(1, hut - span), hut - 1) for hut in range(2, huts + 1)]
    pairs = [(rng.randint(1, huts), rng.randint(1, huts)) for _ in range(routes)]
    return case(parents, [rng.randint(1, most) for _ in parents], pairs)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for huts, routes, most, span in (
        (8, 4, 9, 8),
        (60, 20, 100, 3),
        (1000, 900, 10**9, 1000),
        (8000, 8000, 10**9, 2),
        (12_000, 6000, 10**5, 12_000),
        (23_000, 10_000, 9, 2),
    ):
        yield draw(rng, rng.randint(huts // 2 + 1, huts), routes, most, span)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return draw(rng, rng.randint(2, 7), rng.randint(1, 4), 9, rng.randint(1, 6))


def read(text: str) -> tuple[list[int], list[int], Pairs]:
    """Return the parents and lengths of the huts 2, ..., n, and the routes."""
    _sizes, parents, lengths, *routes = (list(map(int, line.split())) for line in text.splitlines())
    return parents, lengths, [(u, v) for u, v in routes]


def solve(text: str) -> str:
    """Above a hut an odd number of routes pass if an odd number of their ends lie at or behind it."""
    parents, lengths, routes = read(text)
    ends = [0] * (len(parents) + 2)
    for route in routes:
        for hut in route:
            ends[hut] ^= 1
    lit = total = dark = 0
    for hut in range(len(parents) + 1, 1, -1):
        ends[parents[hut - 2]] ^= ends[hut]
        lit += ends[hut]
        total += ends[hut] * lengths[hut - 2]
        dark = max(dark, (1 - ends[hut]) * lengths[hut - 2])
    return f"{lit} {total} {dark}"


def brute(text: str) -> str:
    """Walk every route, switch by switch."""
    parents, lengths, routes = read(text)
    lamps = [False] * (len(parents) + 2)
    for route in routes:
        low, high = sorted(route)
        while low != high:
            lamps[high] = not lamps[high]
            low, high = sorted((low, parents[high - 2]))
    lit = [length for hut, length in enumerate(lengths, 2) if lamps[hut]]
    dark = [length for hut, length in enumerate(lengths, 2) if not lamps[hut]]
    return f"{len(lit)} {sum(lit)} {max(dark, default=0)}"
