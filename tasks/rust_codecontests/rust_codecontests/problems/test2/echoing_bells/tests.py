# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: words whose first and last occurrence do not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 2\naaaa\n", "4 3\naaaa\n", "10 3\nabcabxabca\n")

MODULUS = 2**61 - 1
BASE = 1_000_003


def case(length: int, tune: str) -> str:
    """Return the input of a tune."""
    return f"{len(tune)} {length}\n{tune}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield case(1, "a")
    yield case(1, "aa")
    yield case(1, "abcabcz")
    yield case(3, "abcabc")
    yield case(2, "abab")
    yield case(4, "ababab")
    yield case(4, "abababab")
    yield case(6, "abcdef")
    yield case(50_000, "a" * 200_000)
    yield case(60_001, "a" * 120_001)
    yield case(66_000, "ab" * 90_000)
    yield case(90_000, "".join("abcdefghijklmnopqrstuvwxyz"[k * k % 26] for k in range(90_000)) * 2)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, length, letters in ((20, 2, "ab"), (200, 4, "abc"), (3000, 5, "abcd"), (100_000, 8, "abcde")):
        yield case(length, "".join(rng.choices(letters, k=rng.randint(count // 2 + 9, count))))
    for pieces, size, length in ((300, 400, 600), (40, 4000, 4500), (9, 20_000, 30_000)):
        pool = ["".join(rng.choices("abxyz", k=size)) for _ in range(3)]
        yield case(length, "".join(rng.choices(pool, k=pieces)))


def small(rng: random.Random) -> str:
    """One tiny random input."""
    tune = "".join(rng.choices("ab", k=rng.randint(1, 12)))
    return case(rng.randint(1, min(4, len(tune))), tune)


def solve(text: str) -> str:
    """Find where each figure is heard first and last, by its polynomial value modulo a large prime."""
    first_line, tune = text.splitlines()
    count, length = map(int, first_line.split())
    drop = pow(BASE, length, MODULUS)
    value, first, last = 0, dict[int, int](), dict[int, int]()
    for end in range(count):
        value = (value * BASE + ord(tune[end]) - (drop * ord(tune[end - length]) if end >= length else 0)) % MODULUS
        if end >= length - 1:
            first.setdefault(value, end)
            last[value] = end
    return str(sum(last[figure] - start >= length for figure, start in first.items()))


def brute(text: str) -> str:
    """Compare where each figure stands."""
    first_line, tune = text.splitlines()
    length = int(first_line.split()[1])
    figures = {tune[start : start + length] for start in range(len(tune) - length + 1)}
    return str(sum(tune.find(figure) + length <= tune.rfind(figure) for figure in figures))
