# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: guilds that merge, earn and are audited."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

TRADERS = 8000
EVENTS = 12_000
COINS = 10**9

PUBLIC: tuple[str, ...] = (
    "4 7\n10 7 3 0\nM 1 2\nA 2\nM 3 4\nM 2 1\nM 4 1\nA 3\nA 4\n",
    "3 8\n1 0 5\nM 2 2\nA 2\nM 1 2\nM 2 1\nM 1 2\nE 2 4\nA 1\nA 3\n",
)


def text_of(coins: list[int], events: list[str]) -> str:
    """One input."""
    return "\n".join([f"{len(coins)} {len(events)}", " ".join(map(str, coins)), *events]) + "\n"


def some_text(rng: random.Random, n: int, q: int, most: int, weights: tuple[int, int, int]) -> str:
    """Random events; the weights are those of meetings, earnings and audits."""
    events: list[str] = []
    for kind in [*rng.choices("MEA", weights, k=q - 1), "A"]:
        x, y = rng.randint(1, n), rng.randint(1, n)
        events.append({"M": f"M {x} {y}", "E": f"E {x} {rng.randint(0, most)}", "A": f"A {x}"}[kind])
    return text_of([rng.randint(0, most) for _ in range(n)], events)


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n = TRADERS
    yield text_of([0], ["A 1"])
    yield text_of([1], ["M 1 1", "M 1 1", "A 1"])
    yield text_of([0], ["M 1 1", "M 1 1", "E 1 1", "A 1"])
    yield text_of([5, 5], ["M 1 2", "A 1", "M 2 1", "A 2"])
    yield text_of([1, 0, 1], ["M 1 2", "M 2 3", "A 3", "M 3 1", "M 1 1", "M 2 3", "A 2"])
    yield text_of([100, 1, 1, 1], ["M 2 3", "M 3 4", "A 2", "M 4 1", "A 1"])
    yield text_of([1, 1, 9, 9, 0], ["M 1 2", "M 3 4", "E 1 20", "M 2 3", "A 4", "A 5", "M 5 3", "A 5"])
    yield text_of([7, 7, 7, 7], ["M 1 2", "M 3 4", "M 1 3", "A 1", "A 2", "A 3", "A 4"])
    merging = [f"M {i} {i + 1}" for i in range(1, n)]
    yield text_of([COINS] * n, [*merging, "A 1", f"A {n}", f"M 1 {n}", "A 2"])
    yield text_of([i % 3 for i in range(n)], [*merging[::-1], *[f"A {i}" for i in range(1, n, 6)]])
    yield text_of([COINS], [f"E 1 {COINS}"] * (EVENTS - 1) + ["A 1"])
    yield text_of([COINS] * 2, ["M 1 2", *[f"E {1 + i % 2} {COINS - i}" for i in range(EVENTS - 2)], "A 2"])
    half = n // 2
    pairs = [f"M {i} {i + half}" for i in range(1, half + 1)]
    yield text_of(list(range(n)), [*pairs, *[f"A {i}" for i in range(half - 3000, half + 3000)]])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, q, most, weights in (
        (4, 12, 6, (3, 1, 2)),
        (10, 40, 10, (4, 1, 2)),
        (100, 500, 100, (3, 1, 2)),
        (3000, 6000, COINS, (3, 1, 2)),
        (TRADERS, EVENTS, COINS, (4, 1, 1)),
        (6000, EVENTS, COINS, (1, 1, 1)),
        (50, EVENTS, 3, (6, 2, 2)),
    ):
        yield some_text(rng, n, q, most, weights)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return some_text(rng, rng.randint(1, 5), rng.randint(1, 10), rng.choice((2, 9)), (4, 1, 2))


def parse(text: str) -> tuple[list[int], list[list[str]]]:
    """Treasuries and events of an input."""
    lines = text.strip().split("\n")
    return list(map(int, lines[1].split())), [line.split() for line in lines[2:]]


def root_of(leader: list[int], trader: int) -> int:
    """The leader of a trader's guild, with path halving."""
    while leader[trader] != trader:
        leader[trader] = leader[leader[trader]]
        trader = leader[trader]
    return trader


def solve(text: str) -> str:
    """Union-find with the treasury and the size at the root."""
    coins, events = parse(text)
    leader, members = list(range(len(coins))), [1] * len(coins)
    report: list[str] = []
    for kind, *rest in events:
        x = root_of(leader, int(rest[0]) - 1)
        if kind == "A":
            report.append(f"{members[x]} {coins[x]}\n")
        elif kind == "E":
            coins[x] += int(rest[1])
        else:
            y = root_of(leader, int(rest[1]) - 1)
            if x == y:
                coins[x] = max(0, coins[x] - 1)
            else:
                leader[y] = x
                members[x] += members[y]
                coins[x] = max(coins[x], coins[y]) + min(coins[x], coins[y]) // 2
    return "".join(report)


def brute(text: str) -> str:
    """A list of guilds as sets of traders, searched at each event."""
    coins, events = parse(text)
    guilds = [({trader}, money) for trader, money in enumerate(coins, 1)]
    report: list[str] = []
    for kind, *rest in events:
        wanted = {int(word) for word in (rest if kind == "M" else rest[:1])}
        involved = [guild for guild in guilds if guild[0] & wanted]
        guilds = [guild for guild in guilds if not guild[0] & wanted]
        traders = set().union(*(guild[0] for guild in involved))
        money = sorted(guild[1] for guild in involved)
        total = money[-1] + sum(money[:-1]) // 2 + (int(rest[1]) if kind == "E" else 0)
        if kind == "M" and len(money) == 1 and total:
            total -= 1
        guilds.append((traders, total))
        if kind == "A":
            report.append(f"{len(traders)} {total}\n")
    return "".join(report)
