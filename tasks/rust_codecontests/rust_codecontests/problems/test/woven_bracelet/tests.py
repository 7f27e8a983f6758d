# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: closed bands of columns that obey rules between neighbours."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("2 3 0\n", "1 2 1\n", "3 4 1\n")

MODULUS = 10**9 + 7


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    top = 10**18
    yield "1 3 1\n"
    yield f"1 {top} 0\n"
    yield f"1 {top - 1} 6\n"
    yield "2 2 0\n"
    yield "2 2 2\n"
    yield f"6 {top} 6\n"
    yield f"6 {top} 0\n"
    yield f"6 {top - 1} 1\n"
    yield f"6 {2**59 - 1} 2\n"
    yield f"2 {2**59} 1\n"
    yield "6 2 0\n"
    yield "6 3 1\n"
    yield "5 4294967297 2\n"
    yield "4 1000000007 1\n"
    yield "3 100000 6\n"


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for height, top, limit in (
        (2, 10, 1),
        (3, 20, 1),
        (3, 10**4, 0),
        (4, 10**6, 2),
        (4, 10**10, 0),
        (5, 10**15, 1),
        (5, 10**18, 6),
        (6, 10**18, 1),
    ):
        yield f"{height} {rng.randint(top // 2, top)} {limit}\n"


def small(rng: random.Random) -> str:
    """One tiny random input."""
    height, width = rng.choice([(1, 2), (1, 5), (1, 8), (2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (3, 4), (4, 3)])
    return f"{height} {width} {rng.randint(0, 4)}\n"


def solve(text: str) -> str:
    """The trace of a power of the transfer matrix."""
    height, width, limit = map(int, text.split())
    columns = [s for s in range(2**height) if not s & s >> 1]
    step = [[int(a != b and (a & b).bit_count() <= limit) for a in columns] for b in columns]
    power = step
    # Left to right over the bits of the exponent; the matrices are symmetric.
    for bit in f"{width:b}"[1:]:
        power = _product(power, power)
        if bit == "1":
            power = _product(power, step)
    return str(sum(power[i][i] for i in range(len(columns))) % MODULUS)


def _product(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
    """The product of two symmetric matrices."""
    return [[sum(x * y for x, y in zip(row, column, strict=True)) % MODULUS for column in b] for row in a]


def brute(text: str) -> str:
    """Choose the columns one after the other and check the ring at its end."""
    height, width, limit = map(int, text.split())
    columns = [c for c in itertools.product("rw", repeat=height) if "rr" not in "".join(c)]

    def fits(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
        """Whether a column may follow another."""
        return a != b and sum(x == y == "r" for x, y in zip(a, b, strict=True)) <= limit

    bands: list[tuple[tuple[str, ...], ...]] = [(column,) for column in columns]
    for _ in range(width - 1):
        bands = [(*band, column) for band in bands for column in columns if fits(band[-1], column)]
    return str(sum(fits(band[-1], band[0]) for band in bands) % MODULUS)
