# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Area covered by rectangles of both of two kinds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "1 1\n0 0 4 3\n2 1 6 5\n",
    "2 2\n0 0 2 2\n10 10 5 5\n1 1 8 8\n4 9 6 -3\n",
)
TOP = 10**9
LARGEST = 6000
Box = tuple[int, int, int, int]


def case(zones: list[Box], roofs: list[Box]) -> str:
    """Writes an input."""
    rows = "".join(" ".join(map(str, box)) + "\n" for box in [*zones, *roofs])
    return f"{len(zones)} {len(roofs)}\n{rows}"


def private() -> Iterator[str]:
    """Yields corner cases."""
    everything = (-TOP, -TOP, TOP, TOP)
    yield case([everything], [everything])
    yield case([everything], [])
    yield case([], [(0, 0, 1, 1)])
    yield case([everything, (0, 0, 5, 5)], [(TOP, -TOP, -TOP, TOP), (-3, -3, 3, 3)])
    yield case([(0, 0, 2, 2)], [(2, 0, 4, 2), (0, 2, 2, 4)])
    yield case([(0, 0, 3, 3), (1, 1, 4, 4)], [(0, 0, 4, 4), (2, 2, 3, 3), (2, 2, 3, 3)])
    yield case([(5, 1, 1, 5)], [(4, 2, 2, 4), (4, 4, 2, 2), (2, 4, 4, 2)])
    half = LARGEST // 2
    yield case(
        [(-TOP, 7 * i, TOP, 7 * i + 3) for i in range(half)],
        [(11 * i, -TOP, 11 * i + 5, TOP) for i in range(half)],
    )
    yield case([(-i, -i, i, i) for i in range(1, half + 1)], [(0, 0, 2 * i, 2 * i) for i in range(1, half + 1)])
    yield case([(i, i, i + 40, i + 40) for i in range(half)], [(i, 3000 - i, i + 50, 3050 - i) for i in range(half)])
    yield "1 2\n0 0\n100 100 50 50 200 200\n\n-10 60 60 -10 "
    yield case([(i, -i, TOP - i, i + 1) for i in range(1, half)], [everything])


def box(rng: random.Random, top: int, side: int) -> Box:
    """Draws a rectangle with its corners in any order."""
    x, y = rng.randint(-top, top - 1), rng.randint(-top, top - 1)
    xs, ys = [x, min(top, x + rng.randint(1, side))], [y, min(top, y + rng.randint(1, side))]
    rng.shuffle(xs)
    rng.shuffle(ys)
    return xs[0], ys[0], xs[1], ys[1]


def generated(rng: random.Random) -> Iterator[str]:
    """Yields random inputs of growing size."""
    for count, top, side in (
        (3, 5, 5),
        (10, 20, 15),
        (100, 1000, 300),
        (1000, 10**6, 10**5),
        (half_size(), TOP, 10**8),
        (half_size(), TOP, 10**7),
    ):
        first = rng.randint(1, count)
        boxes = [box(rng, top, side) for _ in range(2 * count)]
        yield case(boxes[:first], boxes[first:])


def half_size() -> int:
    """Returns half of the largest number of rectangles."""
    return LARGEST // 2


def small(rng: random.Random) -> str:
    """Draws a tiny input."""
    zones = [box(rng, 4, 5) for _ in range(rng.randint(0, 3))]
    return case(zones, [box(rng, 4, 5) for _ in range(rng.randint(0 if zones else 1, 3))])


def boxes_of(text: str) -> tuple[list[Box], list[Box]]:
    """Reads the zones and roofs, lower left corner first."""
    count, _, *numbers = map(int, text.split())
    boxes = [
        (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
        for x1, y1, x2, y2 in zip(*(numbers[i::4] for i in range(4)), strict=True)
    ]
    return boxes[:count], boxes[count:]


def union_area(boxes: list[Box]) -> int:
    """Sweeps over x with a segment tree of the covered length over y."""
    ys = sorted({y for box in boxes for y in (box[1], box[3])})
    index = {y: i for i, y in enumerate(ys)}
    size = 1
    while size < len(ys):
        size *= 2
    cover, length = [0] * (2 * size), [0] * (2 * size)

    def add(node: int, left: int, right: int, strips: tuple[int, int], change: int) -> None:
        """Adds a change to the cover of the strips."""
        low, high = strips
        if low <= left and right <= high:
            cover[node] += change
        else:
            middle = (left + right) // 2
            if low < middle:
                add(2 * node, left, middle, strips, change)
            if high > middle:
                add(2 * node + 1, middle, right, strips, change)
        if cover[node]:
            length[node] = ys[min(right, len(ys) - 1)] - ys[left]
        else:
            length[node] = length[2 * node] + length[2 * node + 1] if right - left > 1 else 0

    events = sorted(
        itertools.chain(
            ((x1, index[y1], index[y2], 1) for x1, y1, _, y2 in boxes),
            ((x2, index[y1], index[y2], -1) for _, y1, x2, y2 in boxes),
        ),
    )
    area = before = 0
    for x, low, high, change in events:
        area += (x - before) * length[1]
        before = x
        add(1, 0, size, (low, high), change)
    return area


def solve(text: str) -> str:
    """Takes the area of zones and roofs together from the sum of their areas."""
    zones, roofs = boxes_of(text)
    return str(union_area(zones) + union_area(roofs) - union_area(zones + roofs))


def brute(text: str) -> str:
    """Paints each cell of the compressed grid."""
    zones, roofs = boxes_of(text)
    xs = sorted({x for box in zones + roofs for x in (box[0], box[2])})
    ys = sorted({y for box in zones + roofs for y in (box[1], box[3])})
    area = 0
    for left, right in itertools.pairwise(xs):
        for low, high in itertools.pairwise(ys):
            if all(any(b[0] <= left < b[2] and b[1] <= low < b[3] for b in kind) for kind in (zones, roofs)):
                area += (right - left) * (high - low)
    return str(area)
