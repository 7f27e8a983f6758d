# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Numbers of a range that are divisible by a power of two and have an odd number of one bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("3\n1 8 0\n4 15 2\n5 100 3\n", "2\n6 6 1\n7 7 0\n")
LIMIT = 10**18


def case(rows: list[tuple[int, int, int]]) -> str:
    """Writes shifts as an input."""
    return f"{len(rows)}\n" + "".join(f"{low} {high} {grip}\n" for low, high, grip in rows)


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case([(0, 0, 0)])
    yield case([(0, 0, 60), (0, 1, 0), (0, 2, 1), (0, 16, 4)])
    yield case([(0, LIMIT, 0), (1, LIMIT, 0), (0, LIMIT, 60), (0, LIMIT, 59)])
    yield case([(LIMIT, LIMIT, k) for k in range(61)])
    yield case([(1, LIMIT, k) for k in range(61)])
    yield case([(9, 15, 3), (8, 15, 3), (9, 16, 3), (8, 8, 3), (24, 24, 3), (1, 7, 3)])
    yield case([(2**k, 2**k, k) for k in range(60)])
    yield case([(2**k - 1, 2**k - 1, 0) for k in range(60)])
    yield case([(2**k + 1, 2 ** (k + 1) - 1, k) for k in range(59)])
    yield case([(2**35, 2**36, 33), (2**31, 2**33, 31), (2**31, 2**33, 32)])
    yield case([(low, high, grip) for grip in range(4) for low in range(20) for high in range(low, 20)])


def shift(rng: random.Random, top: int, grips: int) -> tuple[int, int, int]:
    """Draws one shift."""
    low, high = sorted((rng.randint(0, top), rng.randint(0, top)))
    return low, high, rng.randint(0, grips)


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, grips in ((5, 30, 2), (50, 1000, 5), (500, 10**6, 12), (1000, 10**10, 30)):
        yield case([shift(rng, top, grips) for _ in range(count)])
    for grips in (3, 30, 60):
        yield case([shift(rng, LIMIT, grips) for _ in range(5000)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    return case([shift(rng, rng.choice((5, 40, 200)), 4) for _ in range(3)])


def lit_below(end: int) -> int:
    """Returns how many lit numbers are less than end: one of each pair 2i, 2i + 1."""
    return end // 2 + (end % 2 and (end - 1).bit_count() % 2)


def solve(text: str) -> str:
    """Divides the range by the power of two, then counts pairs."""
    numbers = list(map(int, text.split()))
    answers = []
    for i in range(numbers[0]):
        low, high, grip = numbers[1 + 3 * i : 4 + 3 * i]
        answers.append(lit_below((high >> grip) + 1) - lit_below((low + (1 << grip) - 1) >> grip))
    return "\n".join(map(str, answers))


def brute(text: str) -> str:
    """Looks at each number."""
    numbers = list(map(int, text.split()))
    answers = []
    for i in range(numbers[0]):
        low, high, grip = numbers[1 + 3 * i : 4 + 3 * i]
        answers.append(sum(1 for x in range(low, high + 1) if x % 2**grip == 0 and f"{x:b}".count("1") % 2 == 1))
    return "\n".join(map(str, answers))
