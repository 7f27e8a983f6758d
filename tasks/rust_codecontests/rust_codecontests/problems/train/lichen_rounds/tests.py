# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of lichen_rounds: a linear cellular automaton on a torus for very many seasons."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "3 4 2 1\n0 1\n1 0\n1000\n0100\n0010\n",
    "3 5 3 6\n0 0\n0 1\n-1 0\n00000\n00100\n01000\n",
)
HUGE = 10**18


def _case(seasons: int, feelers: list[tuple[int, int]], stone: list[str]) -> str:
    """Write one input."""
    head = f"{len(stone)} {len(stone[0])} {len(feelers)} {seasons}"
    return "\n".join([head, *(f"{r} {c}" for r, c in feelers), *stone]) + "\n"


def _random(rng: random.Random, size: tuple[int, int], seasons: int, count: int, reach: int) -> str:
    """Write a random stone with random feelers."""
    feelers = [(rng.randint(-reach, reach), rng.randint(-reach, reach)) for _ in range(count)]
    return _case(seasons, feelers, ["".join(rng.choices("01", k=size[1])) for _ in range(size[0])])


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(6)
    yield _case(0, [(0, 1)], ["10", "01", "11"])
    yield _case(HUGE, [(0, 0)], ["1"])
    yield _case(HUGE, [(5, -7), (1000, 999)], ["1"])
    yield _case(1, [(0, 0), (0, 0), (0, 0), (1, 1), (1, 1)], ["110", "010", "001"])
    yield _case(5, [(0, -1), (-1, 0)], ["100", "000", "000", "000"])
    yield _case(HUGE - 1, [(-1000, -1000), (1000, 1000), (-999, 998)], ["10110", "00101", "11100"])
    yield _random(rng, (1, 9973), HUGE, 6, 1000)
    yield _random(rng, (9973, 1), HUGE - 1, 5, 1000)
    yield _random(rng, (97, 103), 2**59 - 1, 6, 1000)
    yield _random(rng, (100, 100), 999999999999999989, 6, 1)
    yield _random(rng, (99, 101), 2**59, 3, 1000)
    yield _random(rng, (7, 11), 2**32 + 1, 3, 3)
    yield _case(
        10**17 + 3,
        [(0, 1), (0, -1), (1, 0), (-1, 0), (0, 0)],
        ["0" * 77] * 40 + ["0" * 38 + "1" + "0" * 38] + ["0" * 77] * 48,
    )


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for size, seasons, count, reach in (
        ((2, 3), 2, 2, 1),
        ((4, 4), 9, 3, 2),
        ((9, 5), 1000, 4, 5),
        ((20, 31), 10**6, 3, 100),
        ((50, 51), 10**12, 5, 1000),
        ((80, 111), HUGE, 6, 1000),
    ):
        yield _random(rng, size, seasons - rng.randint(0, 1), count, reach)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _random(rng, (rng.randint(1, 4), rng.randint(1, 4)), rng.randint(0, 20), rng.randint(1, 4), 4)


def solve(text: str) -> str:
    """Jump by powers of two: over the field of two elements feelers only double in length when the rule is squared."""
    tokens = text.split()
    rows, columns, count, seasons = map(int, tokens[:4])
    feelers = [(int(tokens[4 + 2 * i]), int(tokens[5 + 2 * i])) for i in range(count)]
    stone = [int(row, 2) for row in tokens[4 + 2 * count :]]
    full = (1 << columns) - 1
    for bit in range(seasons.bit_length()):
        if seasons >> bit & 1:
            new = [0] * rows
            for down, right in feelers:
                turn = (right << bit) % columns
                for r in range(rows):
                    old = stone[(r + (down << bit)) % rows]
                    new[r] ^= (old << turn & full) | old >> (columns - turn)
            stone = new
    lines = [f"{row:0{columns}b}" for row in stone]
    return "\n".join([str("".join(lines).count("1")), *lines]) + "\n"


def brute(text: str) -> str:
    """Let one season pass after the other."""
    lines = text.splitlines()
    rows, columns, count, seasons = map(int, lines[0].split())
    feelers = [tuple(map(int, line.split())) for line in lines[1 : 1 + count]]
    alive = {(r, c) for r in range(rows) for c in range(columns) if lines[1 + count + r][c] == "1"}
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    for _ in range(seasons):
        alive = {(r, c) for r, c in cells if sum(((r + x) % rows, (c + y) % columns) in alive for x, y in feelers) % 2}
    stone = ["".join("1" if (r, c) in alive else "0" for c in range(columns)) for r in range(rows)]
    return "\n".join([str(len(alive)), *stone]) + "\n"
