# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Count the pieces with exactly k flavours, none of them more than c times."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "6 2 2\n1 2 1 1 3 3\n",
    "5 1 3\n7 7 7 7 8\n",
)


def _text(row: list[int], k: int, c: int) -> str:
    """The input of this row."""
    return f"{len(row)} {k} {c}\n{' '.join(map(str, row))}\n"


def private() -> Iterator[str]:
    """Corner cases: one praline, too few flavours, all the same, all different, large numbers, the limits."""
    yield _text([10**9], 1, 1)
    yield _text([4, 4], 2, 1)
    yield _text([4, 4, 4, 4], 1, 1)
    yield _text([4, 5, 4, 5, 4, 5], 2, 1)
    yield _text([4, 5, 4, 5, 4, 5], 2, 6)
    yield _text([9, 8, 7, 6, 5, 6, 7, 8, 9], 5, 1)
    yield _text([1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3], 3, 2)
    yield _text([6] * 70000, 1, 70000)
    yield _text([i % 9 + 1 for i in range(70000)], 9, 70000)
    yield _text([10**9 - i for i in range(27000)], 13500, 1)
    yield _text([6] * 70000, 1, 35000)


def generated(rng: random.Random) -> Iterator[str]:
    """Random rows of growing length."""
    for n, flavours, k, c in (
        (10, 3, 2, 3),
        (60, 5, 4, 3),
        (1000, 10**9, 30, 2),
        (5000, 40, 20, 6),
        (35000, 3000, 300, 4),
        (70000, 9, 9, 12),
        (70000, 7, 5, 70000),
    ):
        yield _text([rng.randint(1, flavours) for _ in range(n)], k, c)


def small(rng: random.Random) -> str:
    """At most ten pralines."""
    n = rng.randint(1, 10)
    return _text([rng.randint(1, 4) for _ in range(n)], rng.randint(1, min(n, 3)), rng.randint(1, min(n, 4)))


def _at_most(row: list[int], k: int, c: int) -> int:
    """Pieces with at most k flavours, none more than c times."""
    count: dict[int, int] = {}
    left = total = 0
    for right, flavour in enumerate(row):
        count[flavour] = count.get(flavour, 0) + 1
        while len(count) > k or count.get(flavour, 0) > c:
            first = row[left]
            count[first] -= 1
            if not count[first]:
                del count[first]
            left += 1
        total += right + 1 - left
    return total


def solve(text: str) -> str:
    """At most k flavours less at most k - 1."""
    _, k, c, *row = map(int, text.split())
    return f"{_at_most(row, k, c) - _at_most(row, k - 1, c)}\n"


def brute(text: str) -> str:
    """Look at every piece."""
    n, k, c, *row = map(int, text.split())
    pieces = [row[i:j] for i in range(n) for j in range(i + 1, n + 1)]
    return f"{sum(len(set(piece)) == k and max(map(piece.count, piece)) <= c for piece in pieces)}\n"
