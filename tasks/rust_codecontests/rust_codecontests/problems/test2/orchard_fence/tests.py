# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: cuts of a tree into parts whose sums have equal remainders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 3\n1 2 3 5\n1 1 2\n", "3 5\n-4 3 3\n3 1\n")


def case(divisor: int, apples: list[int], parents: list[int]) -> str:
    """Return the input of a tree; ``parents`` are those of all trees but the first."""
    return f"{len(apples)} {divisor}\n{' '.join(map(str, apples))}\n{' '.join(map(str, parents))}\n"


def renamed(rng: random.Random, parents: list[int]) -> list[int]:
    """Return the same tree with other numbers for all trees but the first; ``parents`` are of the trees 2, ..., n."""
    names = [0, 1, *rng.sample(range(2, len(parents) + 2), len(parents))]
    new = [0] * (len(parents) + 2)
    for child, parent in enumerate(parents, 2):
        new[names[child]] = names[parent]
    return new[2:]


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    most = 10**9
    yield case(1, [0, 0], [1])
    yield case(7, [3, -4], [1])
    yield case(4, [3, -4, 9], [1, 1])
    yield case(2, [1, 1, 1, 1], [3, 4, 1])
    yield case(most, [most, most, -most, -most], [1, 2, 3])
    yield case(most, [most] * 13_000, list(range(1, 13_000)))
    yield case(most - 1, [-most] * 12_000, [*range(3, 12_001), 1])
    yield case(10, [1] * 33_000, [*range(3, 33_001), 1])
    yield case(3, [k % 5 for k in range(35_000)], [1] * 34_999)
    yield case(11, [5, *[1, -1] * 15_000], [*range(3, 30_002), 1])


def draw(rng: random.Random, count: int, divisor: int, most: int, span: int) -> str:
    """Return a random tree whose ways are long if ``span`` is small."""
    parents = [rng.randint(max(1, child - span), child - 1) for child in range(2, count + 1)]
    parents = renamed(rng, parents) if rng.randrange(5) else parents
    return case(divisor, [rng.randint(-most // 3, most) for _ in range(count)], parents)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for count, divisor, most, span in (
        (8, 3, 9, 5),
        (50, 4, 100, 3),
        (1000, 7, 10**9, 1000),
        (15_000, 1000, 10**9, 15_000),
        (15_000, 9, 10**9, 3),
        (30_000, 12, 90, 2),
    ):
        yield draw(rng, rng.randint(count // 2 + 1, count), divisor, most, span)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return draw(rng, rng.randint(2, 7), rng.randint(1, 4), 6, rng.randint(1, 6))


def read(text: str) -> tuple[int, list[int], list[int]]:
    """Return the divisor, the apples, and the parents of the trees 2, ..., n."""
    first, second, third = text.splitlines()
    return int(first.split()[1]), list(map(int, second.split())), list(map(int, third.split()))


def solve(text: str) -> str:
    """Add up the trees behind every rope, from the leaves on."""
    divisor, apples, parents = read(text)
    sums, left = [0, *apples], [0] * (len(apples) + 1)
    for parent in parents:
        left[parent] += 1
    leaves = [tree for tree in range(2, len(apples) + 1) if left[tree] == 0]
    for tree in leaves:  # grows meanwhile
        parent = parents[tree - 2]
        sums[parent] += sums[tree]
        left[parent] -= 1
        if left[parent] == 0 and parent != 1:
            leaves.append(parent)
    differences = [abs(sums[1] - 2 * sums[tree]) for tree in leaves]
    return f"{sum(difference % divisor == 0 for difference in differences)} {min(differences)}"


def brute(text: str) -> str:
    """For every rope, see on which side of it each tree is."""
    divisor, apples, parents = read(text)
    fair, smallest = 0, None
    for cut in range(2, len(apples) + 1):
        difference = 0
        for tree, number in enumerate(apples, 1):
            place = tree
            while place not in {1, cut}:
                place = parents[place - 2]
            difference += number if place == cut else -number
        fair += difference % divisor == 0
        smallest = abs(difference) if smallest is None else min(smallest, abs(difference))
    return f"{fair} {smallest}"
