# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Blocks whose bitwise OR and greatest common divisor are congruent."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("5 3\n6 4 2 3 9\n", "4 2\n1 1 2 2\n")
LARGEST = 35000
TOP = 2**20 - 1


def case(period: int, drums: list[int]) -> str:
    """Writes an input."""
    return f"{len(drums)} {period}\n{' '.join(map(str, drums))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case(1, [1])
    yield case(1000000, [TOP])
    yield case(1, [TOP - i % 1000 for i in range(LARGEST)])
    yield case(1000000, [720720] * LARGEST)
    yield case(7, [2 ** (i % 20) for i in range(2000)])
    yield case(5, [2**19 // 2 ** min(19, i // 500) for i in range(20000)])
    yield case(1, [720720, 360360, 180180] * 11000)
    yield case(999999, [1, 2, 4, 1000000, 1, 48575, 1000000, 3])
    yield case(3, [6, 6, 6, 9, 9, 9, 12, 12, 18, 27, 1, 1, 3])
    yield case(2, [3, 6, 12, 24, 48, 96, 192, 384, 768] * 50)
    yield "6 4\n8 12\n4\n\n20 16 2 "
    yield case(2, [2, 3] * 1000)


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, period in ((8, 10, 3), (40, 63, 5), (400, 1000, 7), (3000, TOP, 2), (LARGEST, TOP, 3)):
        yield case(period, [rng.randint(1, top) for _ in range(count)])
    yield case(12, [12 * rng.choice((1, 2, 3, 4, 8, 64, 4096)) for _ in range(20000)])
    yield case(
        6,
        [math.prod(rng.choice((1, 2, 3, 4, 5, 7)) for _ in range(5)) * 6 for _ in range(LARGEST)],
    )


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    top = rng.choice((4, 12, 40))
    return case(rng.randint(1, 6), [rng.randint(1, top) for _ in range(rng.randint(1, 8))])


def solve(text: str) -> str:
    """Groups the starts of the blocks that end at a drum by their pair of values."""
    _, period, *drums = map(int, text.split())
    groups: list[tuple[int, int, int]] = []
    total = 0
    for drum in drums:
        merged: list[tuple[int, int, int]] = []
        for roar, hum, count in [*groups, (drum, drum, 1)]:
            new = (roar | drum, math.gcd(hum, drum))
            if merged and merged[-1][:2] == new:
                merged[-1] = (*new, merged[-1][2] + count)
            else:
                merged.append((*new, count))
        groups = merged
        total += sum(count for roar, hum, count in groups if (roar - hum) % period == 0)
    return str(total)


def brute(text: str) -> str:
    """Computes both sounds of each block from its drums."""
    n, period, *drums = map(int, text.split())
    total = 0
    for start in range(n):
        for end in range(start + 1, n + 1):
            block = drums[start:end]
            total += (functools.reduce(operator.or_, block) - math.gcd(*block)) % period == 0
    return str(total)
