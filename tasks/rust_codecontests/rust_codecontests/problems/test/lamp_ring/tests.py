# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Additions on arcs of a ring, longer than the ring at times: the largest level, where, how many positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5 3\n1 3 2\n4 3 1\n2 7 -1\n",
    "3 2\n3 2 5\n1 1 -9\n",
)

Walk = tuple[int, int, int]


def _text(n: int, walks: list[Walk]) -> str:
    """The input of these walks."""
    return f"{n} {len(walks)}\n" + "".join(f"{s} {c} {w}\n" for s, c, w in walks)


def private() -> Iterator[str]:
    """Corner cases: one lamp, whole laps, the seam of the ring, all negative, the limits."""
    yield _text(1, [(1, 1, 0)])
    yield _text(1, [(1, 1000000, 1000000)])
    yield _text(4, [(3, 4, 7)])
    yield _text(4, [(3, 8, -7), (2, 4, 3)])
    yield _text(6, [(6, 1, 4), (6, 2, 1), (5, 3, 1)])
    yield _text(6, [(4, 3, 10), (4, 15, -3)])
    yield _text(7, [(1, 7, -5), (3, 2, -1), (7, 3, -1)])
    yield _text(2, [(2, 3, 5), (1, 2, -4), (1, 5, 1)])
    yield _text(100000, [(100000, 1000000, 1000000)] * 12000)
    yield _text(99999, [(i * 6 + 1, 1000000 - i, 1000000 if i % 3 else -999999) for i in range(12000)])
    yield _text(3, [(i % 3 + 1, 1000000 - i, -1000000) for i in range(1000)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random walks on rings of growing size."""
    for n, m, far, high in (
        (10, 8, 25, 5),
        (50, 30, 60, 10),
        (1000, 200, 3000, 100),
        (5000, 2000, 5000, 10**6),
        (100000, 5000, 10**6, 10**6),
        (77777, 12000, 10**6, 10**6),
    ):
        yield _text(n, [(rng.randint(1, n), rng.randint(1, far), rng.randint(-high, high)) for _ in range(m)])


def small(rng: random.Random) -> str:
    """A ring of at most six lamps."""
    n = rng.randint(1, 6)
    walks = [(rng.randint(1, n), rng.randint(1, 15), rng.randint(-4, 4)) for _ in range(rng.randint(1, 5))]
    return _text(n, walks)


def solve(text: str) -> str:
    """Whole laps are added everywhere, the rest of a walk by differences."""
    n, m, *rest = map(int, text.split())
    step = [0] * (2 * n + 1)
    everywhere = 0
    for i in range(0, 3 * m, 3):
        s, c, w = rest[i : i + 3]
        laps, part = divmod(c, n)
        everywhere += laps * w
        step[s - 1] += w
        step[s - 1 + part] -= w
    levels = []
    level = 0
    for change in step:
        level += change
        levels.append(level)
    levels = [everywhere + levels[i] + levels[i + n] for i in range(n)]
    best = max(levels)
    return f"{best} {levels.index(best) + 1} {sum(x > 0 for x in levels)}\n"


def brute(text: str) -> str:
    """Walk from lamp to lamp."""
    n, m, *rest = map(int, text.split())
    level = dict.fromkeys(range(1, n + 1), 0)
    for walk in range(m):
        lamp, c, w = rest[3 * walk : 3 * walk + 3]
        for _ in range(c):
            level[lamp] += w
            lamp = 1 if lamp == n else lamp + 1
    best, where = max((value, -lamp) for lamp, value in level.items())
    return f"{best} {-where} {len([1 for value in level.values() if value > 0])}\n"
