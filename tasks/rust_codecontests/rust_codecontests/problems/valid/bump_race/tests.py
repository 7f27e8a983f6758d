# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of bump_race: a board game with magic cells, bumping and second throws."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SIX = 6
PUBLIC: tuple[str, ...] = (
    "2 10 2 6\n3 7\n7 1\n3 5 6 2 2 3\n",
    "3 12 1 9\n5 2\n2 5 6 4 4\n1 6 6 3\n",
)


def _case(size: tuple[int, int], magic: dict[int, int], throws: list[int], line: int = 20) -> str:
    """Write one input; size is the number of players and the last cell."""
    out = [f"{size[0]} {size[1]} {len(magic)} {len(throws)}", *(f"{a} {b}" for a, b in magic.items())]
    out += [" ".join(map(str, throws[i : i + line])) for i in range(0, len(throws), line)]
    return "\n".join(out) + "\n"


def _random(rng: random.Random, size: tuple[int, int], count: int, throws: int) -> str:
    """Write a random race."""
    last = size[1]
    cells = rng.sample(range(last), min(count, last))
    magic = {cell: min(last - 1, max(0, cell + rng.randint(-9, 15))) for cell in cells}
    return _case(size, magic, rng.choices(range(1, 7), k=throws), rng.choice([1, 10, 10**6]))


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(2)
    yield _case((2, 1), {}, [1])
    yield _case((2, 1), {0: 0}, [2, 6, 6, 6, 1, 1])
    yield _case((3, 6), {}, [6, 6, 1, 1, 1])
    yield _case((2, 20), {2: 4, 4: 2}, [2, 4, 2, 2, 1, 1])
    yield _case((4, 9), {1: 0, 2: 0}, [1, 2, 1, 2, 3, 3, 3, 3])
    yield _case((3, 8), {3: 3, 7: 0}, [3, 3, 3, 6, 1, 4, 5, 5, 5, 6, 6])
    yield _case((8, 5), {}, [5] * 7 + [1, 2, 3])
    yield _case((8, 5), {}, [6, 5] * 8 + [1])
    yield _case((2, 100000), {}, [6] * 16666 + [4, 6, 5, 3] * 8000)
    yield _case((5, 100000), {i: i - 1 for i in range(1, 1001)}, [1] * 50000)
    yield _case((3, 10), {9: 4, 8: 3, 7: 2}, [6, 1, 2] * 10000)
    yield _random(rng, (8, 100000), 1000, 50000)


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for size, count, throws in (
        ((2, 10), 2, 8),
        ((3, 15), 4, 30),
        ((4, 40), 10, 100),
        ((6, 30), 20, 60),
        ((8, 300), 100, 700),
        ((5, 2000), 300, 2500),
        ((8, 20000), 1000, 45000),
    ):
        yield _random(rng, size, count, throws)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _random(rng, (rng.randint(2, 4), rng.randint(1, 12)), rng.randint(0, 6), rng.randint(1, 15))


def solve(text: str) -> str:
    """Play the race with a list of positions."""
    players, last, count, amount, *rest = map(int, text.split())
    magic = dict(zip(rest[0 : 2 * count : 2], rest[1 : 2 * count : 2], strict=True))
    cell = [0] * players
    place = [0] * players
    done = turn = 0
    for throw in rest[2 * count : 2 * count + amount]:
        new = cell[turn] + throw
        if new == last:
            done += 1
            place[turn] = done
            cell[turn] = last
            if done == players - 1:
                break
        elif new < last:
            new = magic.get(new, new)
            if new:
                cell = [0 if other == new else other for other in cell]
            cell[turn] = new
        if throw != SIX or place[turn]:
            turn = (turn + 1) % players
            while place[turn]:
                turn = (turn + 1) % players
    return "".join(f"{c} {p}\n" for c, p in zip(cell, place, strict=True))


def brute(text: str) -> str:
    """Play the race with a queue of players and a track that knows who stands on each cell."""
    head, *lines = text.splitlines()
    players, last, count, _ = map(int, head.split())
    track: list[set[int]] = [set() for _ in range(last + 1)]
    track[0] = set(range(1, players + 1))
    leads = {line.split()[0]: int(line.split()[1]) for line in lines[:count]}
    throws = " ".join(lines[count:]).split()[::-1]
    queue = list(range(1, players + 1))
    finished: list[int] = []
    while throws and len(queue) > 1:
        player = queue.pop(0)
        again = True
        while again and throws and player not in finished:
            throw = int(throws.pop())
            again = throw == SIX
            at = next(i for i, standing in enumerate(track) if player in standing)
            if at + throw > last:
                continue
            track[at].remove(player)
            if at + throw == last:
                finished.append(player)
                track[last].add(player)
                continue
            target = leads.get(str(at + throw), at + throw)
            if target:
                track[0] |= track[target]
                track[target] = set()
            track[target].add(player)
        if player not in finished:
            queue.append(player)
    out = []
    for player in range(1, players + 1):
        at = next(i for i, standing in enumerate(track) if player in standing)
        out.append(f"{at} {finished.index(player) + 1 if player in finished else 0}")
    return "\n".join(out) + "\n"
