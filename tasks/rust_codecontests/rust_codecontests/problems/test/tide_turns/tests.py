# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Compare sums of neighbouring blocks: changes of direction and the longest rising run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "9 1\n1 3 2 4 6 6 9 8 7\n",
    "8 2\n1 2 4 3 3 4 0 1\n",
)


def _text(levels: list[int], w: int) -> str:
    """The input of these levels."""
    return f"{len(levels)} {w}\n{' '.join(map(str, levels))}\n"


def private() -> Iterator[str]:
    """Corner cases: too short, just long enough, always still, still minutes between, the limits."""
    yield _text([4], 1)
    yield _text([4, 5, 6], 2)
    yield _text([4, 5, 6, 7, 1], 5)
    yield _text([4, 5, 6, 7], 2)
    yield _text([7, 7, 1, 1], 2)
    yield _text([3] * 50, 4)
    yield _text([1, 2, 2, 1, 1, 2, 2, 3, 3, 3, 2], 1)
    yield _text([5, 4, 4, 3, 3, 3, 1], 1)
    yield _text([2, 3, 3, 4, 4, 4, 5, 6, 6, 7, 8, 9], 1)
    yield _text([-(10**9)] * 12500 + [10**9] * 12500, 12500)
    yield _text([10**9 if i // 100 % 2 else -(10**9) for i in range(25000)], 150)
    yield _text([i - 12500 for i in range(25000)], 1)
    yield _text([10**9] * 25000, 9000)


def generated(rng: random.Random) -> Iterator[str]:
    """Random levels of growing number."""
    for n, w, high in (
        (12, 2, 3),
        (60, 3, 4),
        (500, 1, 2),
        (5000, 40, 3),
        (25000, 7, 10**9),
        (25000, 3000, 10**9),
        (25000, 2, 1),
    ):
        yield _text([rng.randint(-high, high) for _ in range(n)], w)


def small(rng: random.Random) -> str:
    """At most twelve levels."""
    n = rng.randint(1, 12)
    return _text([rng.randint(-2, 2) for _ in range(n)], rng.randint(1, min(n, 4)))


def solve(text: str) -> str:
    """Block sums from prefix sums, then one pass."""
    n, w, *levels = map(int, text.split())
    prefix = [0]
    for level in levels:
        prefix.append(prefix[-1] + level)
    turns = longest = run = last = 0
    for i in range(2 * w, n + 1):
        change = prefix[i] - 2 * prefix[i - w] + prefix[i - 2 * w]
        run = run + 1 if change > 0 else 0
        longest = max(longest, run)
        if change:
            turns += last * change < 0
            last = change
    return f"{turns} {longest}\n"


def brute(text: str) -> str:
    """Write a letter for each minute and count in the words."""
    n, w, *levels = map(int, text.split())
    word = ""
    for i in range(2 * w, n + 1):
        newer, older = sum(levels[i - w : i]), sum(levels[i - 2 * w : i - w])
        word += "r" if newer > older else "f" if newer < older else "s"
    moving = word.replace("s", "")
    runs = word.replace("f", "s").split("s")
    return f"{moving.count('rf') + moving.count('fr')} {max(map(len, runs))}\n"
