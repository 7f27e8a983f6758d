# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: the cheapest network with pipes of two guilds."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

HOUSES = 6000
OFFERS = 12_000
DEAREST = 10**9

Offer = tuple[int, int, int, str]

PUBLIC: tuple[str, ...] = (
    "4 5\n1 2 1 B\n2 3 2 B\n3 4 9 B\n1 3 4 R\n2 4 10 R\n",
    "3 3\n1 2 5 R\n2 3 1 R\n1 3 2 R\n",
    "5 6\n1 2 3 R\n2 3 3 B\n3 4 1 R\n4 5 7 B\n1 5 6 B\n2 5 2 R\n",
)


def text_of(n: int, offers: list[Offer]) -> str:
    """One input."""
    return f"{n} {len(offers)}\n" + "".join(f"{a} {b} {w} {guild}\n" for a, b, w, guild in offers)


def some_text(rng: random.Random, n: int, m: int, dearest: int, red: float, *, surcharge: int) -> str:
    """A random connected village; the red guild asks for a surcharge."""
    names = list(range(1, n + 1))
    rng.shuffle(names)
    offers: list[Offer] = []
    for i in range(m):
        a = i + 1 if i + 1 < n else rng.randrange(n)
        b = rng.randrange(max(0, a - 40), a) if i + 1 < n else (a + rng.randrange(1, n)) % n
        guild = "R" if i + 1 >= n and rng.random() < red else "B"
        price = rng.randint(0, dearest) + (surcharge if guild == "R" else 0)
        offers.append((names[a], names[b], min(price, DEAREST), guild))
    rng.shuffle(offers)
    swap = rng.random() < 1 / 2
    return text_of(n, [(a, b, w, "BR"[g == "B"] if swap else g) for a, b, w, g in offers])


def line_of(n: int, price: int, guild: str) -> list[Offer]:
    """Offers that join every house to the next one."""
    return [(i, i + 1, price, guild) for i in range(1, n)]


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = HOUSES
    star = [(1, i, i, "B") for i in range(2, 201)]
    extra = [(2 + i % 150, 153 + i % 47, DEAREST - i * 7919, "R") for i in range(OFFERS - 199)]
    yield text_of(200, [*star[:-1], *extra[::-1], star[-1]])
    yield text_of(1, [])
    yield text_of(2, [])
    yield text_of(2, [(1, 2, 3, "R")])
    yield text_of(2, [(1, 2, 3, "R"), (2, 1, 4, "B"), (1, 2, 2, "B"), (1, 2, 9, "R")])
    yield text_of(2, [(1, 2, 0, "R"), (2, 1, 0, "R")])
    yield text_of(3, [(1, 2, 3, "R"), (2, 1, 4, "B")])
    yield text_of(3, [(1, 2, 5, "R"), (2, 3, 5, "R"), (3, 2, 5, "B")])
    yield text_of(3, [(1, 2, 1, "B"), (2, 3, 9, "B"), (1, 2, 3, "R"), (2, 3, 12, "R"), (1, 3, 11, "R")])
    path = [(1, 2, 1, "R"), (2, 3, 50, "R"), (3, 4, 1, "R")]
    yield text_of(4, [*path, (1, 2, 40, "B"), (2, 3, 80, "B"), (1, 4, 75, "B")])
    yield text_of(4, [(1, 2, 1, "R"), (3, 4, 1, "B"), (1, 2, 2, "B"), (4, 3, 1, "R")])
    yield text_of(n, line_of(n, DEAREST, "R"))
    yield text_of(n, [*line_of(n, DEAREST, "R"), (1, n, DEAREST, "B")])
    middle = n // 2
    chain = [(a, b, w if a != middle else DEAREST // 2, g) for a, b, w, g in line_of(n, 1, "B")]
    dearer = [(i, i + 1, 1000 + i, "R") for i in range(1, middle)]
    yield text_of(n, [*chain, *dearer, (1, n, DEAREST // 2 + 7, "R")])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, m, dearest, red, surcharge in (
        (5, 8, 9, 0.5, 5),
        (12, 25, 30, 0.6, 30),
        (100, 240, 1000, 0.5, 1000),
        (700, 2000, 10**6, 0.4, 10**6),
        (3000, 8000, DEAREST // 2, 0.7, DEAREST // 2),
        (6000, 11_500, DEAREST // 3, 0.9, DEAREST // 3),
        (6000, 11_500, DEAREST, 0.5, 0),
    ):
        yield some_text(rng, n, m, dearest, red, surcharge=surcharge)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(2, 5)
    if rng.random() < 1 / 3:
        pairs = [rng.sample(range(1, n + 1), 2) for _ in range(rng.randint(0, 7))]
        return text_of(n, [(a, b, rng.randint(0, 9), rng.choice("RB")) for a, b in pairs])
    return some_text(rng, n, rng.randint(n - 1, 8), 9, 0.8, surcharge=rng.choice((0, 4, 9)))


def parse(text: str) -> tuple[int, list[Offer]]:
    """Number of houses and offers of an input."""
    words = text.split()
    m = int(words[1])
    offers = [(int(words[i]), int(words[i + 1]), int(words[i + 2]), words[i + 3]) for i in range(2, 2 + 4 * m, 4)]
    return int(words[0]), offers


def up_to_root(parent: list[int], house: int) -> list[int]:
    """The way from a house to its root."""
    way = [house]
    while parent[way[-1]] != way[-1]:
        way.append(parent[way[-1]])
    return way


def dearest_between(parent: list[int], link: list[int], a: int, b: int) -> int:
    """The dearest pipe between two houses of the cheapest tree; links grow dearer towards the root."""
    worst = 0
    while a != b:
        if parent[b] == b or (parent[a] != a and link[a] <= link[b]):
            a, b = b, a
        worst, b = link[b], parent[b]
    return worst


def solve(text: str) -> str:
    """Kruskal's tree; if one guild has no pipe in it, the best exchange of a single pipe."""
    n, offers = parse(text)
    if len({guild for *_, guild in offers}) < len("RB"):
        return "-1\n"
    parent, link, size = list(range(n + 1)), [0] * (n + 1), [1] * (n + 1)
    total, guilds, pipes = 0, set(), 0
    for rank, (a, b, w, guild) in enumerate(sorted(offers, key=lambda offer: offer[2])):
        low, high = sorted((up_to_root(parent, a)[-1], up_to_root(parent, b)[-1]), key=lambda root: size[root])
        if low != high:
            parent[low], link[low] = high, rank
            size[high] += size[low]
            total, pipes = total + w, pipes + 1
            guilds.add(guild)
    if pipes < n - 1:
        return "-1\n"
    prices = sorted(w for _, _, w, _ in offers)
    if len(guilds) == 1:
        extra = [offer for offer in offers if offer[3] not in guilds]
        saved = [0 if pipes == 1 else prices[dearest_between(parent, link, a, b)] for a, b, _, _ in extra]
        total += min(w - back for (_, _, w, _), back in zip(extra, saved, strict=True))
    return f"{total}\n"


def brute(text: str) -> str:
    """Tries all sets of offers."""
    n, offers = parse(text)
    best = -1
    for count in range(len(offers) + 1):
        for chosen in combinations(offers, count):
            houses = {1}
            for _ in range(n):
                houses |= {x for a, b, *_ in chosen for x in (a, b) if a in houses or b in houses}
            if len(houses) == n and len({guild for *_, guild in chosen}) == len("RB"):
                price = sum(offer[2] for offer in chosen)
                best = price if best < 0 else min(best, price)
    return f"{best}\n"
