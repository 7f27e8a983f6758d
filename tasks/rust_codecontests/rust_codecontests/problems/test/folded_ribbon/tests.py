# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of folded_ribbon: letters of a long text described by repetitions and reversals."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "2(x~(a3(bc)))\n6\n1 2 8 9 10 16\n",
    "q~(~(ab)c)5(z)\n9\n1 2 3 4 5 6 7 8 9\n",
)


def _parse(pattern: str) -> list[tuple[str, int, list[Any], list[int]]]:
    """Return groups as (kind, count, items, starts), inner groups first; the last one is the whole pattern."""
    groups: list[tuple[str, int, list[Any], list[int]]] = []
    stack: list[tuple[str, int, list[Any], list[int]]] = [("1", 1, [], [0])]
    for word in re.findall(r"[a-z]|\d+\(|~\(|\)", pattern):
        if word.endswith("("):
            stack.append((word[0], 1 if word[0] == "~" else int(word[:-1]), [], [0]))
            continue
        item: str | int = word
        size = 1
        if word == ")":
            groups.append(stack.pop())
            item = len(groups) - 1
            size = groups[-1][1] * groups[-1][3][-1]
        stack[-1][2].append(item)
        stack[-1][3].append(stack[-1][3][-1] + size)
    return [*groups, stack[0]]


def _case(rng: random.Random, pattern: str, count: int) -> str:
    """Write one input with the ends and random places of the text."""
    length = _parse(pattern)[-1][3][-1]
    places = [1, length][:count] + [rng.randint(1, length) for _ in range(count - 2)]
    return f"{pattern}\n{len(places)}\n{' '.join(map(str, places))}\n"


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(1)
    yield "a\n1\n1\n"
    yield _case(rng, "1000000000(1000000000(z))", 2000)
    yield _case(rng, "~(~(~(abc)))~(xy)", 20)
    yield _case(rng, "~(a2(bc)d~(ef)3(g~(hi)))", 60)
    yield _case(rng, "10(a)11(b)100(c)1(d)", 200)
    yield _case(rng, "a~(999999999(bc~(999(def)))g)", 500)
    yield _case(rng, "2(" * 58 + "~(ab)" + ")" * 58, 2000)
    yield _case(rng, "x2(" * 50 + "~(ab)" + "y)" * 50, 2000)
    yield _case(rng, "~(" * 4999 + "abcde" + ")" * 4999, 100)
    yield _case(rng, "~(p1(" * 2400 + "x" + "q))" * 2400, 100)
    yield _case(rng, "".join(rng.choices("abcdefghij", k=19990)), 2000)
    yield _case(rng, "~(" + "".join(f"{rng.randint(1, 10**9)}({rng.choice('abc')}x)" for _ in range(1300)) + ")", 2000)
    yield _case(rng, "7(~(a" * 20 + "bc" + "d)e)" * 20, 1000)


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for budget, most, count in (
        (6, 10**2, 5),
        (15, 10**4, 20),
        (60, 10**9, 100),
        (300, 10**13, 500),
        (1500, 10**16, 2000),
        (6000, 10**17, 2000),
    ):
        yield _case(rng, _random(rng, budget, most), count)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    return _case(rng, _random(rng, rng.randint(1, 8), 30), 4)


def _random(rng: random.Random, budget: int, most: int) -> str:
    """Write a random pattern of about budget items whose text has at most about most letters."""
    text, length = rng.choice("abcd"), 1
    for _ in range(budget):
        kind = rng.choice(["reverse", "reverse", "repeat", "append", "append", "prepend", "prepend", "block"])
        if kind == "reverse":
            text = f"~({text})"
        elif kind == "repeat" and length * 2 <= most:
            count = rng.randint(1, min(12, most // length))
            text, length = f"{count}({text})", length * count
        elif kind == "append":
            text, length = text + rng.choice("abcd"), length + 1
        elif kind == "prepend":
            text, length = rng.choice("abcd") + text, length + 1
        elif kind == "block":
            text, length = text + f"~(2({rng.choice('abcd')}x)z)", length + 5
    return text


def solve(text: str) -> str:
    """Walk down from the whole pattern to the letter for every place."""
    pattern, _, *places = text.split()
    groups = _parse(pattern)
    letters = []
    for place in places:
        item: str | int = len(groups) - 1
        at = int(place) - 1
        while isinstance(item, int):
            kind, _, items, starts = groups[item]
            at = starts[-1] - 1 - at if kind == "~" else at % starts[-1]
            child = bisect_right(starts, at) - 1
            at -= starts[child]
            item = items[child]
        letters.append(item)
    return f"{groups[-1][3][-1]}\n{''.join(letters)}\n"


def brute(text: str) -> str:
    """Rewrite the innermost brackets until none is left."""
    pattern, _, *places = text.split()
    while "(" in pattern:
        pattern = re.sub(r"(\d+)\(([a-z]+)\)", lambda m: m[2] * int(m[1]), pattern)
        pattern = re.sub(r"~\(([a-z]+)\)", lambda m: m[1][::-1], pattern)
    return f"{len(pattern)}\n{''.join(pattern[int(place) - 1] for place in places)}\n"
