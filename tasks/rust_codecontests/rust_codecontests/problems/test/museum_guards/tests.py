# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Time with enough seniors and enough guards: in total, and the longest stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "4 1 2\n0 10 1\n2 6 0\n6 9 0\n15 20 1\n",
    "3 1 1\n5 8 1\n1 4 0\n8 9 1\n",
)

Shift = tuple[int, int, int]


def _text(shifts: list[Shift], a: int, b: int) -> str:
    """The input of these shifts."""
    return f"{len(shifts)} {a} {b}\n" + "".join(f"{s} {e} {t}\n" for s, e, t in shifts)


def private() -> Iterator[str]:
    """Corner cases: one guard, never safe, changes at one second, a = 0, a > b, the limits."""
    yield _text([(3, 9, 1)], 1, 1)
    yield _text([(3, 9, 0)], 1, 1)
    yield _text([(3, 9, 0)], 0, 1)
    yield _text([(10**9 - 1, 10**9, 1)], 1, 1)
    yield _text([(0, 5, 1), (5, 10, 1), (10, 15, 1), (17, 20, 1)], 1, 1)
    yield _text([(0, 5, 1), (5, 10, 0), (10, 15, 1), (0, 15, 0)], 1, 2)
    yield _text([(0, 5, 1), (1, 6, 1), (2, 7, 1), (3, 8, 0)], 2, 1)
    yield _text([(0, 5, 1), (1, 6, 1), (2, 7, 0), (3, 8, 1)], 3, 4)
    yield _text([(4, 9, 0), (4, 9, 1), (9, 12, 0), (9, 12, 1), (13, 14, 1), (13, 14, 0)], 1, 2)
    yield _text([(i * 80000, i * 80000 + 80000, 1) for i in range(12000)], 1, 1)
    yield _text([(i, 10**9 - i, i % 2) for i in range(12000)], 3000, 9000)
    yield _text([(i * 50000, i * 50000 + 10**8, 1 - i % 3 % 2) for i in range(12000)], 1000, 1700)


def generated(rng: random.Random) -> Iterator[str]:
    """Random shifts of growing number."""
    for n, a, b, end, length in (
        (6, 1, 2, 20, 8),
        (40, 2, 4, 100, 15),
        (400, 3, 5, 2000, 30),
        (3000, 6, 15, 10**6, 6000),
        (12000, 20, 50, 10**9, 10**7),
        (12000, 0, 3, 10**5, 40),
        (12000, 1300, 2500, 10**9, 5 * 10**8),
    ):
        shifts = []
        for _ in range(n):
            start = rng.randrange(end)
            shifts.append((start, min(end, start + rng.randint(1, length)), rng.randint(0, 1)))
        yield _text(shifts, a, b)


def small(rng: random.Random) -> str:
    """At most six guards."""
    n = rng.randint(1, 6)
    shifts = []
    for _ in range(n):
        start = rng.randrange(12)
        shifts.append((start, start + rng.randint(1, 7), rng.randint(0, 1)))
    return _text(shifts, rng.randint(0, min(n, 2)), rng.randint(1, min(n, 3)))


def solve(text: str) -> str:
    """Sweep over the seconds at which somebody comes or goes."""
    n, a, b, *rest = map(int, text.split())
    changes: dict[int, tuple[int, int]] = {}
    for i in range(n):
        s, e, t = rest[3 * i : 3 * i + 3]
        for time, sign in ((s, 1), (e, -1)):
            guards, seniors = changes.get(time, (0, 0))
            changes[time] = guards + sign, seniors + sign * t
    total = longest = stretch = guards = seniors = last = 0
    for time in sorted(changes):
        stretch = stretch + time - last if seniors >= a and guards >= b else 0
        total += time - last if stretch else 0
        longest = max(longest, stretch)
        guards, seniors = guards + changes[time][0], seniors + changes[time][1]
        last = time
    return f"{total} {longest}\n"


def brute(text: str) -> str:
    """Look at every second by itself."""
    n, a, b, *rest = map(int, text.split())
    shifts = [rest[3 * i : 3 * i + 3] for i in range(n)]
    word = ""
    for second in range(max(e for _, e, _ in shifts)):
        present = [t for s, e, t in shifts if s <= second < e]
        word += "x" if len(present) >= b and sum(present) >= a else " "
    return f"{word.count('x')} {max(map(len, word.split()), default=0)}\n"
