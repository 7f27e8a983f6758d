# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of locked_carriage: a typewriter that overstrikes and rings a bell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5\nhelxo<<l_!world\n".replace("!", "/"),
    "3\nab<ccd_/x^^y\n",
)


def _case(width: int, keys: str, piece: int = 10**9) -> str:
    """Write one input, the keys broken into pieces."""
    pieces = [keys[i : i + piece] for i in range(0, len(keys), piece)]
    return "\n".join([str(width), *pieces]) + "\n"


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    yield _case(1, "a")
    yield _case(1, "ab_<bc<_<a")
    yield _case(4, "<<<^^a<a<b<b")
    yield _case(6, "abc/def^^ghi//j", 4)
    yield _case(3, "///")
    yield _case(3, "abc^d<<e/_f/a^^^z/q")
    yield _case(5, "abcde^x<y/_/" * 30, 7)
    yield _case(2, "_" * 49999 + "a")
    yield _case(100, "/" * 50000)
    yield _case(100, "_" * 99 + "z<" * 20000 + "y")
    yield _case(10, "a<b<a<a/" * 3000 + "^" * 12500 + "xyz" + "/" * 11000)
    yield _case(100, ("_" * 99 + "q/") * 490, 1000)
    yield _case(7, "abcdefgh" * 6000, 1)
    yield _case(20, "abcdef<<<<<<abcdff/" * 2000)


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for length, width in ((10, 3), (40, 5), (200, 4), (1500, 30), (9000, 12), (30000, 100), (50000, 60)):
        keys = "".join(rng.choices("ab_<xy/^z", weights=[8, 8, 4, 5, 4, 4, 2, 2, 2], k=length))
        yield _case(width, keys, rng.choice([50, 1000, 10**9]))


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _case(rng.randint(1, 3), "".join(rng.choices("aab_<</^", k=rng.randint(1, 14))), rng.randint(2, 20))


def solve(text: str) -> str:
    """Press the keys on a dictionary of cells."""
    first, *rest = text.split()
    width = int(first)
    cells: dict[tuple[int, int], str] = {}
    row = column = lowest = bell = 0
    for key in "".join(rest):
        if key == "<":
            column = max(0, column - 1)
        elif key == "/":
            row, column = row + 1, 0
            lowest = max(lowest, row)
        elif key == "^":
            row = max(0, row - 1)
        elif column == width:
            bell += 1
        else:
            if key != "_":
                cells[row, column] = key if cells.get((row, column), key) == key else "#"
            column += 1
    lines = [["."] * width for _ in range(lowest + 1)]
    for (r, c), sign in cells.items():
        lines[r][c] = sign
    return "\n".join([str(bell), *("".join(line).rstrip(".") or "." for line in lines)]) + "\n"


def brute(text: str) -> str:
    """Write down where each key was pressed, then look at all strikes on each cell."""
    first, *rest = text.split()
    width = int(first)
    trace: list[tuple[str, int, int]] = []
    row = column = 0
    for key in "".join(rest):
        trace.append((key, row, column))
        step = {"<": -1, "/": -column, "^": 0}.get(key, 1)
        row = max(0, row + {"/": 1, "^": -1}.get(key, 0))
        column = min(width, max(0, column + step))
    rung = [key for key, _, c in trace if c == width and key not in "</^"]
    out = [str(len(rung))]
    for r in range(1 + max([row, *(r for _, r, _ in trace)])):
        line = ""
        for c in range(width):
            struck = {key for key, y, x in trace if key.isalpha() and (y, x) == (r, c)}
            line += struck.pop() if len(struck) == 1 else "#" if struck else "."
        out.append(line.rstrip(".") or ".")
    return "\n".join(out) + "\n"
