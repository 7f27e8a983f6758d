# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests and two solutions of a problem about long walks that pass a multiple of three red doors."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "2 3 3\n1 2 G\n1 2 R\n2 1 R\n",
    "3 6 5\n1 2 R\n2 3 G\n3 1 R\n1 3 G\n3 3 G\n2 2 R\n",
)

MODULUS = 10**9 + 7
LIMIT = 10**18
Doors = list[tuple[int, int, str]]
Matrix = list[list[int]]


def case(rooms: int, minutes: int, doors: Doors) -> str:
    """Return the input of a maze."""
    return f"{rooms} {len(doors)} {minutes}\n" + "".join(f"{u} {v} {colour}\n" for u, v, colour in doors)


def private() -> Iterator[str]:
    """Yield corner cases and inputs at the limits."""
    yield case(1, 1, [])
    yield case(1, 3, [(1, 1, "R")])
    yield case(1, 4, [(1, 1, "R")])
    yield case(1, 6, [(1, 1, "R"), (1, 1, "G"), (1, 1, "G")])
    yield case(2, LIMIT, [(1, 2, "G")])
    yield case(2, LIMIT, [(1, 2, "G"), (2, 2, "R")])
    yield case(2, LIMIT - 1, [(1, 2, "G"), (2, 1, "R")])
    yield case(9, LIMIT, [(u, u % 9 + 1, colour) for u in range(1, 10) for colour in "GGRR"])
    yield case(9, LIMIT, [(u, v, "R" if u < v else "G") for u in range(1, 10) for v in range(1, 10)])
    yield case(3, 2**31, [(1, 2, "R"), (2, 3, "R"), (3, 1, "R"), (3, 3, "G")])
    yield case(2, 2**32 + 5, [(1, 2, "G"), (2, 2, "G"), (2, 1, "R"), (1, 1, "R")])


def draw(rng: random.Random, rooms: int, count: int, minutes: int) -> str:
    """Return a random maze."""
    doors = [(rng.randint(1, rooms), rng.randint(1, rooms), rng.choice("GRR")) for _ in range(count)]
    return case(rooms, minutes, [*doors, (1, rooms, "G")])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for rooms, count, minutes in (
        (3, 6, 8),
        (4, 12, 40),
        (6, 25, 1000),
        (8, 50, 10**9),
        (9, 80, 10**12),
        (9, 199, LIMIT),
        (9, 30, LIMIT),
    ):
        yield draw(rng, rooms, count, rng.randint(minutes // 2, minutes))


def small(rng: random.Random) -> str:
    """Return a tiny random input."""
    return draw(rng, rng.randint(1, 4), rng.randint(1, 6), rng.randint(1, 7))


def read(text: str) -> tuple[int, int, Doors]:
    """Return the number of rooms, the minutes and the doors."""
    (rooms, _count, minutes), *rows = (line.split() for line in text.splitlines())
    return int(rooms), int(minutes), [(int(u), int(v), colour) for u, v, colour in rows]


def solve(text: str) -> str:
    """Raise the transition matrix, whose states are a room and a remainder, to the power of the minutes."""
    rooms, minutes, doors = read(text)
    size = 3 * rooms
    step = [[0] * size for _ in range(size)]
    for u, v, colour in doors:
        for rest in range(3):
            step[3 * u - 3 + rest][3 * v - 3 + (rest + (colour == "R")) % 3] += 1
    row = [1] + [0] * (size - 1)
    while minutes:
        if minutes % 2:
            row = times([row], step)[0]
        step = times(step, step)
        minutes //= 2
    return str(row[3 * rooms - 3])


def times(left: Matrix, right: Matrix) -> Matrix:
    """Return the product of two matrices."""
    columns = list(zip(*right, strict=True))
    return [[sum(map(int.__mul__, row, column)) % MODULUS for column in columns] for row in left]


def brute(text: str) -> str:
    """Count all walks minute by minute, by room and number of red doors."""
    rooms, minutes, doors = read(text)
    walks = Counter({(1, 0): 1})
    for _ in range(minutes):
        longer = Counter[tuple[int, int]]()
        for (room, red), count in walks.items():
            for u, v, colour in doors:
                if u == room:
                    longer[v, red + (colour == "R")] += count
        walks = longer
    return str(sum(count for (room, red), count in walks.items() if room == rooms and red % 3 == 0) % MODULUS)
