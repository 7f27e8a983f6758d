# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: the heaviest subsequence with two allowed differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5 2 3\n4 1 6 3 5\n",
    "6 1 1\n5 -4 4 -3 9 10\n",
    "3 0 7\n-3 -1 -2\n",
)

BIG = 10**9


def _text(up: int, down: int, levels: list[int]) -> str:
    """The input that describes the notes."""
    return f"{len(levels)} {up} {down}\n{' '.join(map(str, levels))}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield _text(0, 0, [-5])
    yield _text(5, 5, [0])
    yield _text(0, 0, [BIG] * 24000)
    yield _text(0, 0, [-BIG] * 20000)
    yield _text(1, 1, [BIG, BIG - 1] * 10000)
    yield _text(BIG, BIG, [-BIG, 0, BIG, 0, BIG, 0, -BIG])
    yield _text(1, 0, [3, 3, 4, 4, 3, 5, 5])
    yield _text(3, 2, [10, -1, 2, 5, 8, 11, 9])
    yield _text(2, 5, [-2, 0, 2, -3, -1, 1])
    yield _text(1, 2, [1, 2, 3, -7, 1, 4, 2])
    yield _text(1, 3, [10, 11, 1, 8, 2, 10, 11])
    yield _text(2, 3, [7, 4, -50, -53, 4, 6])
    yield _text(1, 1, list(range(-12000, 12000)))


def _random(rng: random.Random, count: int, low: int, high: int, step: int) -> str:
    """Random notes."""
    return _text(rng.randint(0, step), rng.randint(0, step), [rng.randint(low, high) for _ in range(count)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, low, high, step in (
        (8, -3, 9, 3),
        (20, -5, 10, 4),
        (100, -20, 20, 8),
        (1000, -100, 50, 10),
        (5000, 0, 1000, 100),
        (20000, -(10**4), 10**5, 300),
        (22000, BIG - 5000, BIG, 70),
    ):
        yield _random(rng, count, low, high, step)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return _random(rng, rng.randint(1, 9), rng.choice([-7, -20, 0]), rng.choice([0, 5]), 4)


def _parse(text: str) -> tuple[int, int, list[int]]:
    """Rise, fall and levels."""
    _, up, down, *levels = map(int, text.split())
    return up, down, levels


def solve(text: str) -> str:
    """From the last note to the first, the greatest worth of a sequence that starts with each level."""
    up, down, levels = _parse(text)
    worth: dict[int, int] = {}
    for level in reversed(levels):
        total = level + max(0, worth.get(level + up, 0), worth.get(level - down, 0))
        worth[level] = max(total, worth.get(level, total))
    return str(max(worth.values()))


def brute(text: str) -> str:
    """Try every choice of notes."""
    up, down, levels = _parse(text)
    best = None
    for mask in range(1, 2 ** len(levels)):
        chosen = [level for i, level in enumerate(levels) if mask >> i & 1]
        tidal = all(chosen[i + 1] - chosen[i] in {up, -down} for i in range(len(chosen) - 1))
        if tidal and (best is None or sum(chosen) > best):
            best = sum(chosen)
    return str(best)
