# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of shelf_tag_order: sorting tags by letters, number and number of digits."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "6\npin10\npin9\nab5\nabc1\npin009\nPin09\n",
    "4\nb2\nB1\na07\nA7\n",
)


def _case(tags: list[str]) -> str:
    """Write one input."""
    return "\n".join([str(len(tags)), *tags]) + "\n"


def _spelling(rng: random.Random, word: str) -> str:
    """Change the case of letters at random."""
    return "".join(rng.choice([c.lower(), c.upper()]) for c in word)


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(5)
    yield _case(["z0"])
    yield _case(["a000", "a0", "a00", "A0", "a1", "a01"])
    yield _case(["q" + "9" * 59, "q" + "1" + "0" * 58, "q" + "0" * 58 + "1", "q18446744073709551616", "q4294967296"])
    yield _case(["zz1", "Z1", "zZ0", "z2", "ZZ00"])
    yield _case(["Zebra1", "apple2", "Apple1", "zebra0"])
    yield _case(["a10", "a9", "a100", "a99", "a1000", "a2"])
    yield _case(["x7", "X7", "x07", "X07", "X7", "x7", "x007"])
    yield _case(["a" * 59 + "1", "A" * 59 + "0", "a" * 58 + "99"])
    yield _case([_spelling(rng, "rope") + "5" for _ in range(3000)])
    yield _case([_spelling(rng, "ab") + "0" * rng.randrange(3) + str(rng.randrange(9)) for _ in range(15000)])
    yield _case(["k" + str(i) for i in range(15000, 0, -1)])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for n in (2, 5, 20, 100, 700, 4000, 12000):
        words = ["".join(rng.choices("abcxyz", k=rng.randint(1, 5))) for _ in range(max(1, n // 8))]
        tags = []
        for _ in range(n):
            digits = "0" * rng.choice([0, 0, 1, 3]) + str(rng.randrange(10 ** rng.choice([1, 2, 3, 8])))
            tags.append(_spelling(rng, rng.choice(words)) + digits)
        yield _case(tags)


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    n = rng.randint(1, 7)
    return _case(
        [
            "".join(rng.choices("aAb", k=rng.randint(1, 2))) + "".join(rng.choices("019", k=rng.randint(1, 3)))
            for _ in range(n)
        ]
    )


def solve(text: str) -> str:
    """Sort by a key."""
    tags = text.split()[1:]

    def key(tag: str) -> tuple[str, int, int]:
        """Return what the rules compare."""
        letters = tag.rstrip("0123456789")
        digits = tag[len(letters) :]
        return letters.lower(), int(digits), len(digits)

    return "\n".join(sorted(tags, key=key)) + "\n"


def brute(text: str) -> str:
    """Insert every tag behind the last one that it does not precede, comparing character by character."""
    shelf: list[str] = []

    def precedes(x: str, y: str) -> bool:
        """Say whether x must stand before y by the first three rules."""
        halves = []
        for tag in (x.upper(), y.upper()):
            cut = next(i for i, c in enumerate(tag) if c.isdigit())
            halves.append((tag[:cut], tag[cut:]))
        (left, one), (right, two) = halves
        if left != right:
            return right.startswith(left) or (not left.startswith(right) and left < right)
        width = max(len(one), len(two))
        if one.zfill(width) != two.zfill(width):
            return one.zfill(width) < two.zfill(width)
        return len(one) < len(two)

    for tag in text.split()[1:]:
        place = len(shelf)
        while place and precedes(tag, shelf[place - 1]):
            place -= 1
        shelf.insert(place, tag)
    return "\n".join(shelf) + "\n"
