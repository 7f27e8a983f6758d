# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Winning first moves in a taking and halving game."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("1 1\n1\n4\n", "3 2\n3 1\n2 5 6\n", "2 2\n4 2\n1 9\n")
TOP = 5000


def case(wall: list[int], bowls: list[int]) -> str:
    """Writes an input."""
    return f"{len(bowls)} {len(wall)}\n{' '.join(map(str, wall))}\n{' '.join(map(str, bowls))}\n"


def private() -> Iterator[str]:
    """Yields corner cases."""
    yield case([1], [0])
    yield case([TOP], [TOP])
    yield case([TOP], [TOP - 1, 0, 3])
    yield case([3], [1, 1, 1, 1])
    yield case([2], [2])
    yield case([7, 1, 4], [0, 0, 10, 0])
    yield case([1], [TOP] * 20000)
    yield case([1], [TOP] * 19999)
    yield case(list(range(40, 0, -1)), [TOP - i % 97 for i in range(20000)])
    yield case([2 * i + 1 for i in range(40)], [i % (TOP + 1) for i in range(20000)])
    yield case([TOP - i for i in range(40)], [TOP - i % 60 for i in range(3001)])
    yield "4 2\n5\n2 6 6\n\n6\n10 "
    yield case([2, 4], [1, 3, 5, 7, 9, 11])


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, size, top in ((3, 2, 9), (6, 3, 30), (50, 5, 200), (1000, 10, 1000), (5001, 20, TOP)):
        yield case(rng.sample(range(1, top // 2), size), [rng.randint(0, top) for _ in range(count)])
    for spread in (50, TOP):
        yield case(rng.sample(range(1, spread + 1), 40), [rng.randint(0, TOP) for _ in range(20000)])


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    wall = rng.sample(range(1, 6), rng.randint(1, 3))
    return case(wall, [rng.randint(0, 6) for _ in range(rng.randint(1, 3))])


def solve(text: str) -> str:
    """Uses nim values; sharing leaves two equal bowls, whose value is 0."""
    n, m, *rest = map(int, text.split())
    wall, bowls = rest[:m], rest[m : m + n]
    values: list[int] = []
    for beads in range(max(bowls) + 1):
        reached = {values[beads - t] for t in wall if t <= beads}
        if beads and beads % 2 == 0:
            reached.add(0)
        values.append(next(v for v in range(len(reached) + 1) if v not in reached))
    whole = 0
    for beads in bowls:
        whole ^= values[beads]

    @functools.cache
    def wins(beads: int) -> int:
        """Counts the winning moves in one bowl."""
        target = whole ^ values[beads]
        taking = sum(1 for t in wall if t <= beads and values[beads - t] == target)
        return taking + (beads > 0 and beads % 2 == 0 and target == 0)

    return str(sum(map(wins, bowls)))


def brute(text: str) -> str:
    """Searches the tree of positions."""
    n, m, *rest = map(int, text.split())
    wall, bowls = rest[:m], rest[m : m + n]

    def moves(position: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yields the position after each move."""
        for i, beads in enumerate(position):
            others = position[:i] + position[i + 1 :]
            for t in wall:
                if t <= beads:
                    yield tuple(sorted((*others, beads - t)))
            if beads and beads % 2 == 0:
                yield tuple(sorted((*others, beads // 2, beads // 2)))

    @functools.cache
    def winning(position: tuple[int, ...]) -> bool:
        """Tells whether the player to move wins."""
        return not all(map(winning, moves(position)))

    return str(sum(1 for after in moves(tuple(bowls)) if not winning(after)))
