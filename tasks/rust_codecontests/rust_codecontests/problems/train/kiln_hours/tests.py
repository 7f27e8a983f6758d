# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests and two solutions of a problem about firing pots at fixed hours, in an order that rules restrict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

POTS = 6000
RULES = 14_000
LONGEST = 10**9

Rule = tuple[int, int]

PUBLIC: tuple[str, ...] = (
    "4 3\n3 2 4 1\n1 2 5 1\n1 2\n2 3\n1 4\n",
    "3 3\n1 1 1\n1 1 1\n1 2\n2 1\n2 3\n",
    "3 1\n2 3 3\n4 1 3\n1 2\n",
)


def text_of(hours: list[int], periods: list[int], rules: list[Rule]) -> str:
    """Return an input."""
    lines = [f"{len(hours)} {len(rules)}", " ".join(map(str, hours)), " ".join(map(str, periods))]
    return "\n".join(lines + [f"{a} {b}" for a, b in rules]) + "\n"


def some_text(rng: random.Random, n: int, m: int, reach: int, *, longest: int, backward: float) -> str:
    """Return an input with random rules between nearby pots, some of them backward, and shuffled numbers of pots."""
    names = list(range(1, n + 1))
    rng.shuffle(names)
    rules: list[Rule] = []
    for _ in range(m):
        a = rng.randrange(n)
        b = min(n - 1, a + rng.randint(1, reach))
        if a != b:
            rules.append((names[a], names[b]) if rng.random() >= backward else (names[b], names[a]))
    hours = [rng.randint(1, longest) for _ in range(n)]
    return text_of(hours, [rng.randint(1, longest) for _ in range(n)], rules)


def private() -> Iterator[str]:
    """Yield corner cases and inputs at the limits."""
    n = POTS
    yield text_of([5], [3], [])
    yield text_of([5], [3], [(1, 1)])
    yield text_of([4, 4], [2, 3], [])
    yield text_of([4, 2], [7, 4], [(1, 2)])
    yield text_of([4, 2], [7, 4], [(1, 2), (1, 2), (1, 2)])
    yield text_of([1, 9, 3], [1, 1, 10], [(3, 1), (2, 3)])
    yield text_of([1] * 6, [1] * 6, [(1, 2), (2, 3), (3, 2), (3, 4), (4, 5)])
    yield text_of([1] * 5, [2] * 5, [(2, 2), (2, 3), (1, 4)])
    yield text_of([1] * 7, [1] * 7, [(1, 2), (3, 2), (4, 5), (5, 6), (6, 4), (2, 7)])
    yield text_of([LONGEST] * n, [LONGEST] * n, [(i, i + 1) for i in range(1, n)])
    yield text_of([1] * n, [LONGEST - i for i in range(n)], [(i + 1, i) for i in range(1, n)])
    yield text_of([LONGEST] * n, [1] * n, [(i % n + 1, (i + 1) % n + 1) for i in range(n)])
    layers = [(a, b) for i in range(1, n - 2, 2) for a in (i, i + 1) for b in (i + 2, i + 3)]
    yield text_of([1 + i % 2 for i in range(n)], [1 + i % 3 for i in range(n)], layers)
    yield text_of([7] * n, [5] * n, [])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for n, m, reach, longest, backward in (
        (5, 6, 4, 6, 0.0),
        (12, 16, 3, 10, 0.1),
        (200, 300, 10, 50, 0.0),
        (2000, 4000, 2000, LONGEST, 0.0),
        (POTS, RULES, 8, LONGEST, 0.0),
        (POTS, 8000, 10, LONGEST, 0.05),
        (3000, RULES, 3, 100, 0.0),
    ):
        yield some_text(rng, n, m, reach, longest=longest, backward=backward)


def small(rng: random.Random) -> str:
    """Return a tiny random input."""
    n = rng.randint(1, 7)
    return some_text(rng, n, rng.randint(0, 9), n, longest=6, backward=rng.choice((0.0, 0.2)))


def parse(text: str) -> tuple[list[int], list[int], list[Rule]]:
    """Return the hours, the periods and the rules, with pots numbered from 0."""
    numbers = list(map(int, text.split()))
    n, m = numbers[:2]
    ends = numbers[2 + 2 * n : 2 + 2 * n + 2 * m]
    rules = [(a - 1, b - 1) for a, b in zip(ends[::2], ends[1::2], strict=True)]
    return numbers[2 : 2 + n], numbers[2 + n : 2 + 2 * n], rules


def solve(text: str) -> str:
    """Fire the pots in a topological order."""
    hours, periods, rules = parse(text)
    later: list[list[int]] = [[] for _ in hours]
    waiting = [0] * len(hours)
    for a, b in rules:
        later[a].append(b)
        waiting[b] += 1
    ready = [0] * len(hours)
    fired = [i for i, count in enumerate(waiting) if not count]
    finish: list[int] = []
    for pot in fired:
        finish.append(-(-ready[pot] // periods[pot]) * periods[pot] + hours[pot])
        for b in later[pot]:
            ready[b] = max(ready[b], finish[-1])
            waiting[b] -= 1
            if not waiting[b]:
                fired.append(b)
    if len(fired) < len(hours):
        return f"-1 {len(hours) - len(fired)}\n"
    return f"{max(finish)} {finish.count(max(finish))}\n"


def brute(text: str) -> str:
    """Simulate hour by hour; find the pots that can never be fired from the transitive closure of the rules."""
    hours, periods, rules = parse(text)
    waits = {(b, a) for a, b in rules}
    for _ in hours:
        waits |= {(c, a) for c, b in waits for d, a in waits if b == d}
    vain = [
        i for i in range(len(hours)) if any(i == j or (i, j) in waits for j in range(len(hours)) if (j, j) in waits)
    ]
    if vain:
        return f"-1 {len(vain)}\n"
    finish: dict[int, int] = {}
    hour = 0
    while len(finish) < len(hours):
        for pot in range(len(hours)):
            free = all(finish.get(a, hour + 1) <= hour for a, b in rules if b == pot)
            if pot not in finish and free and hour % periods[pot] == 0:
                finish[pot] = hour + hours[pot]
        hour += 1
    return f"{max(finish.values())} {list(finish.values()).count(max(finish.values()))}\n"
