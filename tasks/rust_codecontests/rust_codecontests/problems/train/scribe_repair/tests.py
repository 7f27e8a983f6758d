# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: the cheapest repair of a word when scraping is paid by stretches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "5 1 2 1\nabcxyzd\nabcd\n",
    "1 1 4 1\nby\nyb\n",
    "10 0 3 9\naxbxc\nabc\n",
)

TOP = 10**6
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _text(costs: tuple[int, int, int, int], old: str, new: str) -> str:
    """The input with four costs and two words."""
    return f"{' '.join(map(str, costs))}\n{old}\n{new}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield _text((1, 1, 1, 1), "a", "a")
    yield _text((1, 1, 1, 1), "a", "z")
    yield _text((1, 1, 1, 100), "a", "n")
    yield _text((0, 0, 0, 0), "abc", "xyzzy")
    yield _text((TOP, TOP, TOP, TOP), "a" * 600, "n" * 600)
    yield _text((TOP, TOP, TOP, TOP), "a" * 600, "n")
    yield _text((TOP, TOP, TOP, TOP), "m", "z" * 600)
    yield _text((1000, 1, 5, 50), "abab" * 150, "a" * 300)
    yield _text((7, 0, 3, 2), "abcdefghij" * 60, "jihgfedcba" * 60)
    yield _text((0, 2, 2, 1), "zzzz", "aaaa")
    yield _text((6, 1, 3, 100), "axbxc", "abc")
    yield _text((5, 1, 3, 100), "xxabxx", "ab")
    yield _text((4, 1, 1, 100), "pqrs", "wv")
    yield _text((TOP, 0, 1, TOP), "az" * 300, "za" * 250)


def _random(rng: random.Random, sizes: tuple[int, int], tops: tuple[int, int, int, int], letters: str) -> str:
    """Random costs; T is S with random damage, filled up or cut to its size."""
    old = "".join(rng.choices(letters, k=sizes[0]))
    new = ""
    while len(new) < sizes[1]:
        start = rng.randrange(sizes[0]) if rng.random() < 1 / 4 else len(new) * sizes[0] // sizes[1]
        new += old[start : start + rng.randint(1, 9)] + rng.choice(letters)
    a, b, c, e = (rng.randint(top // 3, top) for top in tops)
    return _text((a, b, c, e), old, new[: sizes[1]])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    yield _random(rng, (8, 6), (5, 2, 4, 1), "abcxyz")
    yield _random(rng, (15, 20), (20, 3, 9, 2), LETTERS)
    yield _random(rng, (60, 40), (90, 5, 20, 6), "abc")
    yield _random(rng, (120, 160), (1000, 100, 200, 30), LETTERS)
    yield _random(rng, (400, 250), (10**4, 30, 500, 400), "aelnrt")
    yield _random(rng, (599, 580), (10**6, 10**5, 10**6, 10**5), LETTERS)
    yield _random(rng, (600, 480), (10**6, 10**3, 10**5, 10**6), "ab")


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return _random(rng, (rng.randint(1, 5), rng.randint(1, 5)), (9, 4, 6, rng.choice([1, 5])), "abz")


def solve(text: str) -> str:
    """Over prefixes of T, for each prefix of S the best cost with and without an open stretch."""
    first, each, write, step, *words = text.split()
    opening, scrape, write_cost, step_cost = int(first), int(each), int(write), int(step)
    old, new = words
    never = 10**18
    closed, opened = [0] + [never] * len(old), [never] * (len(old) + 1)
    for i in range(len(old)):
        opened[i + 1] = min(opened[i], closed[i] + opening) + scrape
    for letter in new:
        turn = {x: step_cost * min((ord(x) - ord(letter)) % 26, (ord(letter) - ord(x)) % 26) for x in set(old)}
        next_closed, next_opened = [closed[0] + write_cost], [never]
        for i, x in enumerate(old):
            next_opened.append(min(next_opened[i], next_closed[i] + opening) + scrape)
            kept = min(closed[i], opened[i]) + turn[x]
            next_closed.append(min(kept, closed[i + 1] + write_cost))
        closed, opened = next_closed, next_opened
    return str(min(closed[-1], opened[-1]))


def brute(text: str) -> str:
    """Try every set of letters that stay and every set of places in T where they go."""
    *numbers, old, new = text.split()
    opening, scrape, write_cost, step_cost = map(int, numbers)
    best = 10**18
    for size in range(min(len(old), len(new)) + 1):
        for stay in itertools.combinations(range(len(old)), size):
            mask = "".join("s" if i in stay else "x" for i in range(len(old)))
            base = sum(opening + scrape * len(part) for part in mask.split("s") if part)
            base += write_cost * (len(new) - size)
            for places in itertools.combinations(range(len(new)), size):
                pairs = [(LETTERS.index(old[i]), LETTERS.index(new[j])) for i, j in zip(stay, places, strict=True)]
                best = min(best, base + step_cost * sum(min(abs(x - y), 26 - abs(x - y)) for x, y in pairs))
    return str(best)
