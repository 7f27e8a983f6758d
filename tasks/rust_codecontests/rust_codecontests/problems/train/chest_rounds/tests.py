# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: chests that are full at every odd visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

ROOMS = 20_000
MOVES = 10**12
COINS = 10**6

PUBLIC: tuple[str, ...] = (
    "3 5\n2 3 2\n5 1 4\n",
    "4 3\n2 3 4 1\n1 2 3 4\n",
)


def text_of(k: int, exits: list[int], coins: list[int]) -> str:
    """One input."""
    return f"{len(exits)} {k}\n{' '.join(map(str, exits))}\n{' '.join(map(str, coins))}\n"


def lasso(n: int, tail: int) -> list[int]:
    """A way through all rooms in increasing order that returns behind the tail."""
    return [*range(2, n + 1), tail + 1]


def some_text(rng: random.Random, n: int, k: int, most: int, tail: int) -> str:
    """A random castle: rooms on a lasso from room 1, the others anywhere."""
    used = rng.randint(tail + 1, n)
    names = [1, *rng.sample(range(2, n + 1), n - 1)]
    exits = [rng.randint(1, n) for _ in range(n)]
    for at, following in enumerate(lasso(used, tail)):
        exits[names[at] - 1] = names[following - 1]
    return text_of(k, exits, [rng.randint(0, most) for _ in range(n)])


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = ROOMS
    yield text_of(0, [1], [9])
    yield text_of(1, [1], [9])
    yield text_of(MOVES, [1], [COINS])
    yield text_of(MOVES - 1, [1], [COINS])
    yield text_of(0, [2, 2], [3, 5])
    yield text_of(4, [2, 1], [3, 5])
    yield text_of(5, [2, 3, 1], [1, 10, 100])
    yield text_of(6, [2, 3, 1], [1, 10, 100])
    yield text_of(7, [4, 2, 2, 3], [7, 1, 2, 4])
    yield text_of(12, lasso(6, 3), [1, 10, 100, 1000, 10_000, 100_000])
    yield text_of(MOVES, lasso(n, 0), [COINS] * n)
    yield text_of(MOVES, lasso(n, n - 1), [COINS] * n)
    yield text_of(n - 1, lasso(n, n // 2), [i % 7 for i in range(n)])
    yield text_of(3 * n + 1, lasso(n, n // 3), [i * 31 % 1000 for i in range(n)])
    yield text_of(MOVES - 5, lasso(n - 1, n // 2), [COINS - i for i in range(n - 1)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, k, most, tail in (
        (5, 9, 9, 1),
        (10, 37, 20, 4),
        (100, 1000, 100, 20),
        (1000, 10**9, COINS, 0),
        (5000, 123_456_789_012, COINS, 2500),
        (ROOMS, MOVES - 12_345, COINS, 9999),
        (ROOMS, 30_011, COINS, 10),
    ):
        yield some_text(rng, n, k, most, tail)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(1, 6)
    return some_text(rng, n, rng.randint(0, 40), 9, rng.randint(0, n - 1))


def parse(text: str) -> tuple[int, list[int], list[int]]:
    """The number of moves, the exits (rooms from 0) and the coins of an input."""
    numbers = list(map(int, text.split()))
    n = numbers[0]
    return numbers[1], [room - 1 for room in numbers[2 : 2 + n]], numbers[2 + n :]


def solve(text: str) -> str:
    """Counts the visits of every room by division."""
    k, exits, coins = parse(text)
    position = {0: 0}
    way = [0]
    while exits[way[-1]] not in position:
        position[exits[way[-1]]] = len(way)
        way.append(exits[way[-1]])
    tail = position[exits[way[-1]]]
    circle = len(way) - tail
    total = 0
    for at, room in enumerate(way):
        if at <= k:
            visits = 1 if at < tail else (k - at) // circle + 1
            total += (visits + 1) // 2 * coins[room]
    last = way[k] if k < tail else way[tail + (k - tail) % circle]
    return f"{total} {last + 1}\n"


def brute(text: str) -> str:
    """Walks move by move."""
    k, exits, coins = parse(text)
    full = [True] * len(exits)
    room, total = 0, 0
    for move in range(k + 1):
        room = exits[room] if move else 0
        total += coins[room] * full[room]
        full[room] = not full[room]
    return f"{total} {room + 1}\n"
