# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Sets of workers in which each skill is known to some but not to all."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 2 2\n1 2 3 0\n", "6 3 3\n1 2 4 3 5 6\n", "5 1 3\n0 0 1 1 1\n")
MOD = 10**9 + 7
LARGEST = 48000


def case(b: int, c: int, workers: list[int]) -> str:
    """Writes an input."""
    return f"{len(workers)} {b} {c}\n{' '.join(map(str, workers))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case(1, 1, [0])
    yield case(1, 1, [0, 1, 1])
    yield case(1, 2, [0, 1])
    yield case(9, 2, [i % 512 for i in range(LARGEST)])
    yield case(9, LARGEST, [i % 512 for i in range(LARGEST)])
    yield case(9, LARGEST // 2, [i % 512 for i in range(LARGEST)])
    yield case(9, 7, [511] * LARGEST)
    yield case(9, 3, [511, 0] * (LARGEST // 2))
    yield case(9, LARGEST - 1, [0] * (LARGEST - 1) + [511])
    yield case(9, 5, [1 << i % 9 for i in range(900)])
    yield case(3, 2, [0, 7, 1, 6, 2, 5, 3, 4])
    yield "4 2\n3\n1 1\n\n2 0 "
    yield case(4, 4, [1, 2, 4, 8])
    yield case(2, 3, [3] * 40000 + [0])


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, b, c in ((6, 2, 2), (12, 3, 4), (40, 5, 3), (500, 7, 20), (5000, 8, 2), (40000, 9, 11)):
        yield case(b, c, [rng.randrange(2**b) for _ in range(count)])
    yield case(9, 6, [rng.randrange(512) | rng.randrange(512) for _ in range(LARGEST)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    count, b = rng.randint(1, 8), rng.randint(1, 3)
    return case(b, rng.randint(1, min(count, 5)), [rng.randrange(2**b) for _ in range(count)])


def solve(text: str) -> str:
    """Excludes, skill by skill, the crews where all know it or all do not."""
    n, b, c, *workers = map(int, text.split())
    ways = [0] * (n + 1)
    ways[c] = 1
    for size in range(c + 1, n + 1):
        ways[size] = ways[size - 1] * size % MOD * pow(size - c, -1, MOD) % MOD
    counts = [0] * 2**b
    for skills in workers:
        counts[skills] += 1

    def crews(counts: list[int]) -> int:
        """Counts the mixed crews for the skills that remain."""
        if len(counts) == 1:
            return ways[counts[0]]
        half = len(counts) // 2
        without, knowing = counts[:half], counts[half:]
        both = [x + y for x, y in zip(without, knowing, strict=True)]
        return crews(both) - crews(without) - crews(knowing)

    return str(crews(counts) % MOD)


def brute(text: str) -> str:
    """Looks at each crew."""
    _, b, c, *workers = map(int, text.split())
    total = 0
    for crew in itertools.combinations(workers, c):
        total += all(0 < sum(skills >> s & 1 for skills in crew) < c for s in range(b))
    return str(total % MOD)
