# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Pots of at most k and of a bounded spread are fired together: fewest firings, then least fuel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5 2 10\n100 90 80 95 70\n",
    "6 3 5\n21 30 26 20 25 35\n",
)


def _text(pots: list[int], k: int, d: int, per_line: int = 10**9) -> str:
    """An input with so many temperatures a line."""
    rows = [" ".join(map(str, pots[i : i + per_line])) for i in range(0, len(pots), per_line)]
    return f"{len(pots)} {k} {d}\n" + "\n".join(rows) + "\n"


def private() -> Iterator[str]:
    """Corner cases: one pot, no spread allowed, everything together, the limits, several lines."""
    yield _text([7], 1, 0)
    yield _text([5, 5, 5, 5, 5], 2, 0)
    yield _text([5, 4, 3, 2, 1], 5, 0)
    yield _text([1, 10**9], 2, 10**9)
    yield _text([1, 10**9], 2, 10**9 - 2)
    yield _text([9, 3, 8, 1, 7, 2, 6], 1, 100)
    yield _text([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 4, 3)
    yield _text([40, 10, 30, 20, 60, 50, 70], 3, 20, per_line=2)
    yield _text([10**9] * 25000, 1, 0)
    yield _text([10**9 - i for i in range(25000)], 25000, 10**9, per_line=1000)
    yield _text([i * 2 + 1 for i in range(25000)], 3, 4)


def generated(rng: random.Random) -> Iterator[str]:
    """Random pots of growing number."""
    for n, top, k, d in (
        (10, 20, 3, 4),
        (50, 100, 4, 5),
        (300, 10**9, 10, 10**7),
        (2000, 5000, 7, 9),
        (10000, 10**9, 5, 10**6),
        (25000, 10**9, 20000, 10**8),
        (25000, 10**9, 3, 10**5),
    ):
        yield _text([rng.randint(1, top) for _ in range(n)], k, d)


def small(rng: random.Random) -> str:
    """At most six pots."""
    n = rng.randint(1, 6)
    return _text([rng.randint(1, 12) for _ in range(n)], rng.randint(1, n), rng.randint(0, 6))


def solve(text: str) -> str:
    """Fill each firing from the hottest pot that is left downwards."""
    _, k, d, *pots = map(int, text.split())
    firings = fuel = size = 0
    top = 0
    for pot in sorted(pots, reverse=True):
        if size in {0, k} or top - pot > d:
            firings, fuel, size, top = firings + 1, fuel + pot, 0, pot
        size += 1
    return f"{firings} {fuel}\n"


def brute(text: str) -> str:
    """Best plan for each set of pots: some allowed firing, then the best plan for the rest."""
    n, k, d, *pots = map(int, text.split())
    best: list[tuple[int, int]] = [(0, 0)]
    for mask in range(1, 1 << n):
        options = []
        part = mask
        while part:
            inside = [pots[i] for i in range(n) if part >> i & 1]
            if len(inside) <= k and max(inside) - min(inside) <= d:
                firings, fuel = best[mask ^ part]
                options.append((firings + 1, fuel + max(inside)))
            part = (part - 1) & mask
        best.append(min(options))
    return f"{best[-1][0]} {best[-1][1]}\n"
