# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: fields that do not touch the edge of the map."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

SIDE = 350

PUBLIC: tuple[str, ...] = (
    "4 5\naaaaa\nabbca\nacbaa\naaaaa\n",
    "3 4\nabcd\nbbbb\nabcd\n",
    "5 5\nxxxxx\nxyxzx\nxxyxx\nxzxyx\nxxxxx\n",
)


def text_of(rows: list[str]) -> str:
    """One input."""
    return f"{len(rows)} {len(rows[0])}\n" + "\n".join(rows) + "\n"


def some_text(rng: random.Random, height: int, width: int, letters: str, same: float) -> str:
    """A random map in which a square often has the letter of a square before it."""
    rows: list[list[str]] = []
    for i in range(height):
        row: list[str] = []
        for j in range(width):
            before = ([rows[i - 1][j]] if i else []) + ([row[j - 1]] if j else [])
            row.append(rng.choice(before) if before and rng.random() < same else rng.choice(letters))
        rows.append(row)
    return text_of(["".join(row) for row in rows])


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    side = SIDE
    yield text_of(["q"])
    yield text_of(["abcabc"])
    yield text_of(list("zyx"))
    yield text_of(["ab", "cd"])
    yield text_of(["aaa", "aza", "aaa"])
    yield text_of(["aaaa", "abca", "acba", "aaaa"])
    yield text_of(["aaaaa", "abbba", "abcba", "abbba", "aaaaa"])
    yield text_of(["aaaaaa", "adadea", "aaeada", "aeaaaa", "aaaaaa"])
    yield text_of(["aaaaa", "bbbba", "aaaaa"])
    yield text_of(["aaaaa", "abbbb", "aaaaa"])
    yield text_of(["aabaa", "aabaa", "aaaaa", "acaca", "acaca"])
    yield text_of(["aaaaaaa", "abbacca", "aaaacaa", "abaaaaa", "aaaaaaa"])
    yield text_of(["a" * side, *["a" + "m" * (side - 2) + "a"] * (side - 2), "a" * side])
    checks = ["".join("pq"[(i + j) % 2] for j in range(side)) for i in range(side)]
    yield text_of(checks)
    yield text_of(["".join("st"[min(i, j, side - 1 - i, side - 1 - j) % 2] for j in range(side)) for i in range(side)])
    yield text_of(["a" * side if i % 2 == 0 else "a" + "b" * (side - 2) + "a" for i in range(side)])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for height, width, letters, same in (
        (5, 6, "abc", 0.4),
        (8, 8, "ab", 0.3),
        (20, 30, "abcd", 0.6),
        (100, 80, "abcdefghijklmnopqrstuvwxyz", 0.8),
        (SIDE, SIDE, "xyz", 0.5),
        (SIDE, SIDE, "abcdefghijklmnopqrstuvwxyz", 0.9),
        (SIDE, 3, "kl", 0.2),
        (3, SIDE, "fgh", 0.2),
    ):
        yield some_text(rng, height, width, letters, same)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return some_text(rng, rng.randint(1, 6), rng.randint(1, 6), rng.choice(("ab", "abc")), 0.4)


def result(fields: int, areas: dict[str, int]) -> str:
    """The output for the number of hidden fields and the hidden areas of letters."""
    if not fields:
        return "0\n"
    area, letter = min((-area, letter) for letter, area in areas.items())
    return f"{fields} {letter} {-area}\n"


def solve(text: str) -> str:
    """Floods the fields of the edge first, then counts the others."""
    rows = text.split()[2:]
    width = len(rows[0]) + 2
    cells = list(" " * width + "".join(f" {row} " for row in rows) + " " * width)
    last = len(cells) - width
    edge = [i for i in range(width, last) if i < 2 * width or i >= last - width or i % width in {1, width - 2}]
    shown = set(edge)
    fields = 0
    areas: dict[str, int] = {}
    for start in edge + list(range(len(cells))):
        letter = cells[start]
        if letter == " ":
            continue
        queue = [start]
        cells[start] = " "
        for cell in queue:
            for there in (cell - 1, cell + 1, cell - width, cell + width):
                if cells[there] == letter:
                    cells[there] = " "
                    queue.append(there)
        if start not in shown:
            fields += 1
            areas[letter] = areas.get(letter, 0) + len(queue)
    return result(fields, areas)


def brute(text: str) -> str:
    """Gives every square the smallest number of its field by repeated comparison."""
    rows = text.split()[2:]
    label = {(i, j): i * len(rows[0]) + j for i in range(len(rows)) for j in range(len(rows[0]))}
    squares = list(label)
    for _ in squares:
        for i, j in squares:
            for place in ((i + 1, j), (i, j + 1)):
                if place in label and rows[place[0]][place[1]] == rows[i][j]:
                    label[i, j] = label[place] = min(label[i, j], label[place])
    open_labels = {name for (i, j), name in label.items() if i in {0, len(rows) - 1} or j in {0, len(rows[0]) - 1}}
    hidden = [(name, rows[i][j]) for (i, j), name in label.items() if name not in open_labels]
    areas = {letter: sum(1 for _, other in hidden if other == letter) for _, letter in hidden}
    return result(len({name for name, _ in hidden}), areas)
