# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: news called down a tree of couriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

LIMIT = 14_000
LONGEST = 10**9

PUBLIC: tuple[str, ...] = (
    "5\n0 1 1 2 2\n3 2 1 4 5\n0 0 0 0 0\n",
    "4\n0 1 2 3\n5 5 5 5\n0 0 1 0\n",
)


def text_of(parents: list[int], minutes: list[int], quiet: list[int], separator: str = " ") -> str:
    """One input, its lists written with the given separator."""
    lists = (separator.join(map(str, row)) for row in (parents, minutes, quiet))
    return f"{len(parents)}\n" + "\n".join(lists) + "\n"


def some_tree(rng: random.Random, n: int, spread: int) -> list[int]:
    """A random tree with random numbers; a small spread makes it deep."""
    names = list(range(1, n + 1))
    rng.shuffle(names)
    parents = [0] * (n + 1)
    for i in range(1, n):
        parents[names[i]] = names[rng.randrange(max(0, i - spread), i)]
    return parents[1:]


def some_text(rng: random.Random, n: int, spread: int, longest: int, quiet_share: float) -> str:
    """A random input."""
    quiet = [int(rng.random() < quiet_share) for _ in range(n)]
    return text_of(some_tree(rng, n, spread), [rng.randint(0, longest) for _ in range(n)], quiet)


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = LIMIT
    yield text_of([0], [7], [0])
    yield text_of([0], [7], [1])
    yield text_of([2, 0], [1, 0], [0, 0])
    yield text_of([0, 1, 1], [4, 1, 1], [1, 0, 0])
    yield text_of([3, 3, 0, 1, 2], [0, 0, 0, 0, 0], [0] * 5)
    yield text_of([0, 1, 1, 2, 2, 3], [2, 1, 1, 5, 5, 5], [0, 0, 0, 1, 0, 1], "\n")
    yield text_of([0, 1, 1, 1, 2, 3], [1, 2, 1, 0, 0, 0], [0] * 6)
    yield text_of([*range(2, n + 1), 0], [LONGEST] * n, [0] * n)
    yield text_of([0, *range(1, n)], [LONGEST] * n, [0] * n)
    yield text_of([0] + [1] * (n - 1), [LONGEST] * n, [1 - int(i == 0) for i in range(n)])
    yield text_of([0, *range(1, n)], [LONGEST - i for i in range(n)], [int(i == n // 2) for i in range(n)], "\n")


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, spread, longest, share in (
        (5, 5, 3, 0.2),
        (8, 2, 2, 0.1),
        (40, 40, 5, 0.1),
        (300, 10, 1000, 0.02),
        (2000, 2000, 10**6, 0.1),
        (8000, 3, LONGEST, 0.0001),
        (LIMIT, LIMIT, LONGEST, 0.0),
    ):
        yield some_text(rng, n, spread, longest, share)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(1, 7)
    return some_text(rng, n, rng.randint(1, n), rng.choice((1, 3, LONGEST)), rng.choice((0.0, 0.3)))


def parse(text: str) -> tuple[list[int], list[int], list[int]]:
    """Supervisors, minutes and quietness of an input."""
    numbers = list(map(int, text.split()))
    n = numbers[0]
    return numbers[1 : n + 1], numbers[n + 1 : 2 * n + 1], numbers[2 * n + 1 :]


def solve(text: str) -> str:
    """Passes times down the tree from the leader."""
    parents, minutes, quiet = parse(text)
    subordinates: list[list[int]] = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent:
            subordinates[parent - 1].append(i)
    times = {parents.index(0): 0}
    queue = list(times)
    for i in queue:
        if not quiet[i]:
            for turn, j in enumerate(subordinates[i], 1):
                times[j] = times[i] + turn * minutes[i]
                queue.append(j)
    last = max(times.values())
    return f"{len(times)} {last} {min(i for i in times if times[i] == last) + 1}\n"


def brute(text: str) -> str:
    """Climbs from every member to the leader, adding up the waits."""
    parents, minutes, quiet = parse(text)
    heard: list[tuple[int, int]] = []
    for start in range(1, len(parents) + 1):
        member, total, silent = start, 0, False
        while parents[member - 1]:
            boss = parents[member - 1]
            turn = sum(1 for j in range(1, member + 1) if parents[j - 1] == boss)
            total += turn * minutes[boss - 1]
            silent = silent or quiet[boss - 1] == 1
            member = boss
        if not silent:
            heard.append((-total, start))
    best = min(heard)
    return f"{len(heard)} {-best[0]} {best[1]}\n"
