# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: numbers that are multiples of their own length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("3\n1 9\n8 13\n95 108\n", "2\n998 1004\n1000000 1000000\n")

LIMIT = 4 * 10**18


def case(strips: list[tuple[int, int]]) -> str:
    """Return the input of some strips."""
    return f"{len(strips)}\n" + "".join(f"{a} {b}\n" for a, b in strips)


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield case([(1, 1)])
    yield case([(1, LIMIT)])
    yield case([(LIMIT, LIMIT)])
    yield case([(LIMIT - 1, LIMIT), (LIMIT - 1, LIMIT - 1)])
    yield case([(10, 10), (11, 11), (99, 100), (100, 102)])
    yield case([(10**k, 10**k) for k in range(19)])
    yield case([(10**k - 1, 10**k + 1) for k in range(1, 18)])
    yield case([(1, 10**k) for k in range(19)])
    yield case([(10**17 + 16, LIMIT - 1), (123456789, 987654321987654321)])
    yield case([(1, LIMIT)] * 6000)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, digits in ((5, 3), (50, 6), (500, 10), (3000, 18), (6000, 18)):
        yield case([draw(rng, digits) for _ in range(count)])
    yield case([draw(rng, 9) for _ in range(4000)])


def draw(rng: random.Random, digits: int) -> tuple[int, int]:
    """Return a strip of tickets with some number of digits at most."""
    first, last = sorted(rng.randint(1, 10 ** rng.randint(1, digits)) for _ in range(2))
    return first, last


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return case([draw(rng, 3) for _ in range(3)] + [(9990, rng.randint(9990, 10020))])


def solve(text: str) -> str:
    """Count the multiples among the numbers of each length."""
    strips = [tuple(map(int, line.split())) for line in text.splitlines()[1:]]
    return "\n".join(
        str(
            sum(
                max(0, min(last, 10**length - 1) // length - (max(first, 10 ** (length - 1)) - 1) // length)
                for length in range(1, 20)
            )
        )
        for first, last in strips
    )


def brute(text: str) -> str:
    """Look at every ticket."""
    strips = [tuple(map(int, line.split())) for line in text.splitlines()[1:]]
    return "\n".join(str(sum(n % len(str(n)) == 0 for n in range(first, last + 1))) for first, last in strips)
