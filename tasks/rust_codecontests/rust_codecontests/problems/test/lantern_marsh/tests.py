# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests and two solutions of a problem about crossing a marsh by lantern light."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

SIDE = 120
OIL = 12

PUBLIC: tuple[str, ...] = (
    "3 5 2 1\nS~~.G\n.###.\no~~..\n",
    "1 4 3 1\nS~~G\n",
    "2 6 3 0\nSo~~~G\n..####\n",
)


def text_of(rows: list[str], full: int, at_start: int) -> str:
    """Return an input."""
    return f"{len(rows)} {len(rows[0])} {full} {at_start}\n" + "\n".join(rows) + "\n"


def some_text(rng: random.Random, height: int, width: int, full: int, weights: tuple[int, int, int, int]) -> str:
    """Return a random marsh; ``weights`` are the relative frequencies of ground, water, huts and rocks."""
    cells = rng.choices(".~o#", weights, k=height * width)
    start, goal = rng.sample(range(height * width), 2)
    if height * width > SIDE:
        start, goal = rng.randrange(width), height * width - 1 - rng.randrange(width)
    cells[start], cells[goal] = "S", "G"
    rows = ["".join(cells[i * width : (i + 1) * width]) for i in range(height)]
    return text_of(rows, full, rng.randint(0, full))


def comb(length: int, fill: str) -> list[str]:
    """Return a marsh with one long winding passage from start to goal, filled with a repeated pattern."""
    path = [(i, j) for i in range(0, length, 2) for j in (range(length) if i % 4 == 0 else range(length - 1, -1, -1))]
    grid = [["#"] * length for _ in range(length)]
    for at, (i, j) in enumerate(path):
        grid[i][j] = fill[at % len(fill)]
    for i in range(1, length - 1, 2):
        grid[i][length - 1 if i % 4 == 1 else 0] = "."
    (a, b), (x, y) = path[0], path[-1]
    grid[a][b], grid[x][y] = "S", "G"
    return ["".join(row) for row in grid]


def private() -> Iterator[str]:
    """Yield corner cases and inputs at the limits."""
    yield text_of(["SG"], 0, 0)
    yield text_of(["S#G"], 5, 5)
    yield text_of(["S~G"], 1, 1)
    yield text_of(["S~G"], 1, 0)
    yield text_of(["S", "~", "o", "~", "G"], 1, 1)
    yield text_of(["oS~~~~G", "......."], 4, 3)
    yield text_of(["So~~~G", "......"], 3, 3)
    yield text_of(["S~o~~~~G", ".#######", "...#####"], 4, 1)
    yield text_of(["S~~o~~~G", "..#.####", "#......#"], 3, 2)
    yield text_of(["SoG", "..."], 9, 2)
    yield text_of(["S~.~G", ".....", "~~~~~"], 12, 12)
    yield text_of(comb(SIDE - 1, "~~~~~~~~~~~~o"), OIL, OIL)
    yield text_of(comb(SIDE - 1, "~~~~~~~~~~~~o"), OIL - 1, OIL - 1)
    yield text_of(comb(SIDE - 1, "."), 0, 0)
    open_marsh = ["." * SIDE] * (SIDE - 2)
    yield text_of(["S" + "~" * (SIDE - 1), *open_marsh, "~" * (SIDE - 1) + "G"], OIL, OIL)


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for height, width, full, weights in (
        (3, 4, 2, (3, 4, 1, 1)),
        (6, 6, 3, (3, 8, 1, 2)),
        (12, 9, 4, (3, 12, 1, 3)),
        (30, 40, 5, (3, 20, 1, 6)),
        (60, 60, 8, (3, 40, 1, 10)),
        (SIDE, SIDE, OIL, (5, 60, 1, 10)),
        (SIDE, SIDE, 6, (10, 60, 3, 16)),
        (SIDE, SIDE, 9, (1, 40, 1, 8)),
    ):
        yield some_text(rng, height, width, full, weights)


def small(rng: random.Random) -> str:
    """Return a tiny random input."""
    height, width = rng.randint(1, 3), rng.randint(2, 5)
    return some_text(rng, height, width, rng.randint(0, 3), rng.choice(((2, 4, 1, 1), (1, 6, 1, 0))))


def parse(text: str) -> tuple[list[str], int, int]:
    """Return the rows, the lantern's capacity, and the oil at the start."""
    words = text.split()
    return words[4:], int(words[2]), int(words[3])


def solve(text: str) -> str:
    """Search breadth-first over cells and oil, on a grid with a frame of rocks."""
    rows, full, oil = parse(text)
    width = len(rows[0]) + 2
    cells = "#" * width + "".join(f"#{row}#" for row in rows) + "#" * width
    goal, states = cells.index("G"), full + 1
    seen = bytearray(len(cells) * states)
    layer, minutes = [cells.index("S") * states + oil], 0
    while layer:
        arrived = [state % states for state in layer if state // states == goal]
        if arrived:
            return f"{minutes} {max(arrived)}\n"
        following: list[int] = []
        for state in layer:
            cell, left = divmod(state, states)
            moves = [
                there * states + left - (cells[there] == "~")
                for there in (cell - 1, cell + 1, cell - width, cell + width)
                if cells[there] != "#" and (left or cells[there] != "~")
            ]
            if cells[cell] == "o":
                moves.append(cell * states + full)
            for move in moves:
                if not seen[move]:
                    seen[move] = 1
                    following.append(move)
        layer, minutes = following, minutes + 1
    return "-1\n"


def around(rows: list[str], i: int, j: int) -> Iterator[tuple[int, int]]:
    """Yield the neighbouring cells without rocks."""
    for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
        if 0 <= a < len(rows) and 0 <= b < len(rows[0]) and rows[a][b] != "#":
            yield a, b


def brute(text: str) -> str:
    """Compute, minute by minute, the maximum oil with which each cell can be reached."""
    rows, full, oil = parse(text)
    places = [(i, j) for i in range(len(rows)) for j in range(len(rows[0]))]
    start = next(place for place in places if rows[place[0]][place[1]] == "S")
    goal = next(place for place in places if rows[place[0]][place[1]] == "G")
    best = {start: oil}
    for minute in range(len(places) * (full + 2)):
        if goal in best:
            return f"{minute} {best[goal]}\n"
        after: dict[tuple[int, int], int] = {}
        for (i, j), left in best.items():
            if rows[i][j] == "o":
                after[i, j] = full
            for a, b in around(rows, i, j):
                rest = left - (rows[a][b] == "~")
                if rest >= 0:
                    after[a, b] = max(after.get((a, b), 0), rest)
        best = after
    return "-1\n"
