# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests, oracle and brute force: farthest islands in a growing forest of bridges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

ISLANDS = 8000
EVENTS = 13_000
LONGEST = 10**9

Event = tuple[str, int, int, int]

PUBLIC: tuple[str, ...] = (
    "5 9\nJ 1 2 3\nF 1\nJ 2 3 4\nF 2\nJ 4 5 10\nJ 3 1 1\nJ 2 4 1\nF 1\nF 5\n",
    "3 4\nF 2\nJ 2 2 9\nJ 1 3 7\nF 3\n",
)


def text_of(n: int, events: list[Event]) -> str:
    """One input."""
    lines = [f"{n} {len(events)}"]
    return "\n".join(lines + [f"J {u} {v} {w}" if kind == "J" else f"F {u}" for kind, u, v, w in events]) + "\n"


def some_text(rng: random.Random, n: int, q: int, reach: int, *, joins: float, longest: int) -> str:
    """Random events; near numbers are joined and the numbers are mixed afterwards."""
    names = list(range(1, n + 1))
    rng.shuffle(names)
    ways = list(range(1, n))
    rng.shuffle(ways)
    events: list[Event] = []
    for _ in range(q - 1):
        if rng.random() < joins and ways:
            a = ways.pop()
            events.append(("J", names[a], names[rng.randint(max(0, a - reach), a - 1)], rng.randint(1, longest)))
        elif rng.random() < 1 / 10:
            events.append(("J", rng.randint(1, n), rng.randint(1, n), rng.randint(1, longest)))
        else:
            events.append(("F", rng.randint(1, n), 0, 0))
    return text_of(n, [*events, ("F", rng.randint(1, n), 0, 0)])


def asked(islands: list[int]) -> list[Event]:
    """Questions on the given islands."""
    return [("F", u, 0, 0) for u in islands]


def private() -> Iterator[str]:
    """Corner cases and the limits."""
    n, half = ISLANDS, EVENTS // 2
    yield text_of(1, asked([1]))
    yield text_of(1, [("J", 1, 1, 5), *asked([1])])
    yield text_of(2, [*asked([1]), ("J", 2, 1, LONGEST), ("J", 1, 2, 1), *asked([1, 2])])
    yield text_of(4, [("J", 1, 2, 9), ("J", 2, 3, 9), ("J", 3, 4, 1), ("J", 4, 1, 50), *asked([1, 2, 3, 4])])
    yield text_of(6, [("J", 1, 2, 8), ("J", 2, 3, 8), ("J", 4, 5, 1), ("J", 5, 2, 1), *asked([1, 2, 3, 4, 5, 6])])
    yield text_of(
        6, [("J", 4, 5, 2), ("J", 5, 6, 3), *asked([4, 5, 6]), ("J", 1, 2, 1), ("J", 2, 6, 4), *asked([1, 5])]
    )
    chain: list[Event] = [("J", i, i + 1, LONGEST) for i in range(1, n)]
    yield text_of(n, [*chain, *asked(list(range(1, EVENTS - n + 2)))])
    star: list[Event] = [("J", i, 1, LONGEST - i) for i in range(n, 1, -1)]
    yield text_of(n, [*star, *asked(list(range(1, n, 2)))])
    mixed = [event for i in range(1, half) for event in (("J", i, i + 1, i), ("F", 1 + i // 2, 0, 0))]
    yield text_of(half, mixed)
    tips = [event for i in range(1, half) for event in (("J", half - i, half - i + 1, LONGEST), ("F", half, 0, 0))]
    yield text_of(half, tips)
    doubling: list[Event] = []
    step = 1
    while step < n // 2:
        doubling += [("J", i, i + step, step) for i in range(1, n - step, 2 * step)] + asked([1, step, n])
        step *= 2
    yield text_of(n, [*doubling, *asked(list(range(1, n, 3)))])
    yield text_of(n, [("J", 1 + i % 2, 2 - i % 2, LONGEST) for i in range(EVENTS - 2)] + asked([1, 3]))


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for n, q, reach, joins, longest in (
        (5, 10, 4, 0.5, 9),
        (12, 40, 3, 0.4, 20),
        (150, 400, 20, 0.5, 1000),
        (2000, 5000, 2, 0.5, LONGEST),
        (6000, EVENTS, 6000, 0.5, LONGEST),
        (ISLANDS, EVENTS, 3, 0.7, LONGEST),
        (6500, EVENTS, 50, 0.6, 10**6),
    ):
        yield some_text(rng, n, q, reach, joins=joins, longest=longest)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    n = rng.randint(1, 7)
    return some_text(rng, n, rng.randint(1, 14), rng.randint(1, n), joins=0.6, longest=rng.choice((3, 20)))


def parse(text: str) -> tuple[int, list[Event]]:
    """Number of islands and events of an input."""
    rows = [line.split() for line in text.strip().split("\n")]
    events = [(row[0], int(row[1]), int((row[2:] or "0")[0]), int((row[3:] or "0")[0])) for row in rows[1:]]
    return int(rows[0][0]), events


def root_of(leader: list[int], island: int) -> int:
    """The leader of an island's group, with path halving."""
    while leader[island] != island:
        leader[island] = leader[leader[island]]
        island = leader[island]
    return island


class Forest:
    """Distances in the final forest, by heavy paths."""

    def __init__(self, near: list[list[tuple[int, int]]]) -> None:
        n = len(near)
        self.parent, self.away, self.depth = [0] * n, [0] * n, [0] * n
        self.head = list(range(n))
        order: list[int] = []
        seen = [False] * n
        for start in range(n):
            if not seen[start]:
                seen[start] = True
                order.append(start)
                for island in order[len(order) - 1 :]:
                    self._visit(island, near, seen, order)
        size, heavy = [1] * n, [-1] * n
        for island in reversed(order):
            parent = self.parent[island]
            if parent != island and self.depth[island]:
                size[parent] += size[island]
                if heavy[parent] < 0 or size[island] > size[heavy[parent]]:
                    heavy[parent] = island
        for island in order:
            if heavy[island] >= 0:
                self.head[heavy[island]] = self.head[island]

    def _visit(self, start: int, near: list[list[tuple[int, int]]], seen: list[bool], order: list[int]) -> None:
        queue = [start]
        for island in queue:
            for there, length in near[island]:
                if not seen[there]:
                    seen[there] = True
                    self.parent[there], self.away[there] = island, self.away[island] + length
                    self.depth[there] = self.depth[island] + 1
                    queue.append(there)
        order += queue[1:]

    def distance(self, u: int, v: int) -> int:
        """The distance between two islands of one tree."""
        total, head, depth = self.away[u] + self.away[v], self.head, self.depth
        while head[u] != head[v]:
            if depth[head[u]] < depth[head[v]]:
                u, v = v, u
            u = self.parent[head[u]]
        return total - 2 * min(self.away[u], self.away[v])


def solve(text: str) -> str:
    """Keeps two farthest islands of every group; distances come from the final forest."""
    n, events = parse(text)
    near: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    leader = list(range(n + 1))
    for kind, u, v, w in events:
        if kind == "J" and root_of(leader, u) != root_of(leader, v):
            leader[root_of(leader, u)] = root_of(leader, v)
            near[u].append((v, w))
            near[v].append((u, w))
    forest = Forest(near)
    leader = list(range(n + 1))
    ends = [(0, i, i) for i in range(n + 1)]
    report: list[str] = []
    for kind, u, v, _ in events:
        a = root_of(leader, u)
        if kind == "F":
            report.append(f"{max(forest.distance(u, end) for end in ends[a][1:])}\n")
            continue
        b = root_of(leader, v)
        if a != b:
            cross = [(forest.distance(x, y), x, y) for x in ends[a][1:] for y in ends[b][1:]]
            leader[a] = b
            ends[b] = max([ends[a], ends[b], *cross])
    return "".join(report)


def brute(text: str) -> str:
    """Walks over all bridges for every question and every attempt to build."""
    n, events = parse(text)
    bridges: list[tuple[int, int, int]] = []
    report: list[str] = []
    for kind, u, v, w in events:
        reached = {u: 0}
        for _ in range(n):
            for a, b, length in bridges:
                if a in reached:
                    reached.setdefault(b, reached[a] + length)
                elif b in reached:
                    reached[a] = reached[b] + length
        if kind == "F":
            report.append(f"{max(reached.values())}\n")
        elif v not in reached:
            bridges.append((u, v, w))
    return "".join(report)
