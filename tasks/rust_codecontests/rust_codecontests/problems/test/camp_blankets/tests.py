# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: children with wishes in two tents."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

CHILDREN = 10_000
WISHES = 15_000
BLANKETS = 10**9

Wish = tuple[str, int, int]

PUBLIC: tuple[str, ...] = (
    "4 3\n5 1 2 7\nD 1 2\nS 2 3\nD 3 4\n",
    "3 3\n1 1 1\nD 1 2\nD 2 3\nD 1 3\n",
    "5 1\n3 0 4 1 2\nD 1 3\n",
)


def text_of(blankets: list[int], wishes: list[Wish]) -> str:
    """One input."""
    lines = [f"{len(blankets)} {len(wishes)}", " ".join(map(str, blankets))]
    return "\n".join(lines + [f"{kind} {a} {b}" for kind, a, b in wishes]) + "\n"


def consistent(rng: random.Random, n: int, m: int, reach: int, most: int) -> str:
    """A random input whose wishes can be granted; near children are paired."""
    tents = [rng.randrange(2) for _ in range(n)]
    wishes: list[Wish] = []
    for _ in range(m):
        a = rng.randrange(n)
        b = min(n - 1, max(0, a + rng.randint(-reach, reach)))
        wishes.append(("S" if tents[a] == tents[b] else "D", a + 1, b + 1))
    return text_of([rng.randint(0, most) for _ in range(n)], wishes)


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = CHILDREN
    yield text_of([4], [])
    yield text_of([4], [("D", 1, 1)])
    yield text_of([4], [("S", 1, 1)])
    yield text_of([0, 0], [("D", 1, 2)])
    yield text_of([3, 9], [("D", 1, 2), ("S", 2, 1)])
    yield text_of([3, 9, 1], [("S", 1, 2), ("S", 2, 3), ("D", 1, 3)])
    yield text_of([1, 1, 1, 8, 1], [("D", 1, 2), ("D", 2, 3), ("D", 4, 5)])
    yield text_of([1, 2, 3, 4, 5, 6], [("D", 1, 2), ("D", 2, 1), ("S", 5, 6), ("S", 6, 5)])
    yield text_of([2, 2, 5, 6], [("D", 3, 4), ("S", 1, 2), ("D", 2, 3), ("D", 1, 3)])
    yield text_of([BLANKETS] * n, [("S", i, i + 1) for i in range(1, n)])
    yield text_of([BLANKETS - i for i in range(n)], [("D", i, i + 1) for i in range(n - 1, 0, -1)])
    odd_ring: list[Wish] = [("D", i, i % (n - 1) + 1) for i in range(1, n)]
    yield text_of([1] * n, odd_ring)
    yield text_of([BLANKETS] * n, [])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, m, reach, most in ((6, 4, 5, 9), (20, 15, 19, 50), (300, 200, 5, 1000), (3000, 2500, 3000, BLANKETS)):
        yield consistent(rng, n, m, reach, most)
    yield consistent(rng, CHILDREN, WISHES, 2, BLANKETS)
    text = consistent(rng, CHILDREN, WISHES - 1, CHILDREN, BLANKETS)
    head, rest = text.split("\n", 1)
    yield head.replace(str(WISHES - 1), str(WISHES)) + "\n" + rest + f"D {CHILDREN} {CHILDREN}\n"
    yield consistent(rng, CHILDREN, CHILDREN // 2, CHILDREN, BLANKETS)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(1, 6)
    wishes = [(rng.choice("SD"), rng.randint(1, n), rng.randint(1, n)) for _ in range(rng.randint(0, 5))]
    return text_of([rng.randint(0, 9) for _ in range(n)], wishes)


def parse(text: str) -> tuple[list[int], list[Wish]]:
    """Blankets and wishes (children from 0) of an input."""
    words = text.split()
    n, m = int(words[0]), int(words[1])
    rest = words[2 + n :]
    wishes = [(rest[3 * i], int(rest[3 * i + 1]) - 1, int(rest[3 * i + 2]) - 1) for i in range(m)]
    return list(map(int, words[2 : 2 + n])), wishes


def solve(text: str) -> str:
    """Colours every component and takes its heavier side."""
    blankets, wishes = parse(text)
    near: list[list[tuple[int, int]]] = [[] for _ in blankets]
    for kind, a, b in wishes:
        near[a].append((b, int(kind == "D")))
        near[b].append((a, int(kind == "D")))
    side = [-1] * len(blankets)
    total = 0
    for start in range(len(blankets)):
        if side[start] >= 0:
            continue
        side[start] = 0
        queue = [start]
        sums = [0, 0]
        for v in queue:
            sums[side[v]] += blankets[v]
            for u, differ in near[v]:
                if side[u] < 0:
                    side[u] = side[v] ^ differ
                    queue.append(u)
        total += max(sums)
    granted = all((side[a] != side[b]) == (kind == "D") for kind, a, b in wishes)
    return f"{total if granted else -1}\n"


def brute(text: str) -> str:
    """Tries all ways to send the children to the tents."""
    blankets, wishes = parse(text)
    best = -1
    for tents in product((0, 1), repeat=len(blankets)):
        if all((tents[a] != tents[b]) == (kind == "D") for kind, a, b in wishes):
            best = max(best, sum(w for w, tent in zip(blankets, tents, strict=True) if tent))
    return f"{best}\n"
