# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: cutting a row into parts of two kinds in turn, whose cost is a square."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("4 5 50\n1 10 1\n", "5 3 1\n2 1 1 6\n")


def case(first: int, second: int, gaps: list[int]) -> str:
    """Return the input of a canal."""
    return f"{len(gaps) + 1} {first} {second}\n{' '.join(map(str, gaps))}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    most = 10**15
    yield case(7, 0, [])
    yield case(0, 9, [3])
    yield case(9, 0, [2])
    yield case(0, 0, [1000] * 9)
    yield case(most, most, [1000] * 55_000)
    yield case(0, most, [1000] * 50_000)
    yield case(most, 0, [1] * 99_999)
    yield case(10**9, 3 * 10**9, [9] * 99_999)
    yield case(1000, 1, [1, 2, 3, 4, 5, 6, 7, 8, 9] * 10_000)
    yield case(10, 10, [1, 100] * 20_000)


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for lamps, most, gap in (
        (8, 60, 9),
        (60, 500, 20),
        (900, 10**5, 100),
        (30_000, 10**7, 1000),
        (60_000, 10**11, 1000),
        (90_000, 10**5, 9),
    ):
        first, second = (rng.randint(0, most) for _ in range(2))
        yield case(first, second, [rng.randint(1, gap) for _ in range(rng.randint(lamps // 2, lamps))])


def small(rng: random.Random) -> str:
    """One tiny random input."""
    gaps = [rng.randint(1, 6) for _ in range(rng.randint(0, 6))]
    return case(rng.randint(0, 30), rng.randint(0, 30), gaps)


class Hull:
    """The lower envelope of lines with falling slopes, asked at growing places."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int]] = []
        self.at = 0

    def add(self, slope: int, height: int) -> None:
        """Add a line, without those that it makes useless."""
        while len(self.lines) > 1:
            (s1, h1), (s2, h2) = self.lines[-2:]
            if (height - h1) * (s1 - s2) > (h2 - h1) * (s1 - slope):
                break
            self.lines.pop()
        self.lines.append((slope, height))

    def least(self, place: int) -> int:
        """Return the height of the envelope."""
        self.at = min(self.at, len(self.lines) - 1)
        while self.at + 1 < len(self.lines):
            (s1, h1), (s2, h2) = self.lines[self.at : self.at + 2]
            if s1 * place + h1 < s2 * place + h2:
                break
            self.at += 1
        slope, height = self.lines[self.at]
        return slope * place + height


def solve(text: str) -> str:
    """The last batch begins where a line is lowest: one line for each first lamp, for each crew before."""
    sizes, _, gaps = text.partition("\n")
    _lamps, *prices = map(int, sizes.split())
    place, before = 0, [None, 0]  # the least cost without the lamps from here on, by the crew of the last batch
    hulls = Hull(), Hull()
    for gap in [*map(int, gaps.split()), 0]:
        for crew in (0, 1):
            if (cost := before[1 - crew]) is not None:
                hulls[crew].add(-2 * place, cost + prices[crew] + place * place)
        before = [hull.least(place) + place * place if hull.lines else None for hull in hulls]
        place += gap
    return str(min(cost for cost in before if cost is not None))


def brute(text: str) -> str:
    """Try all ways to cut the row."""
    sizes, _, gaps = text.partition("\n")
    lamps, first, second = map(int, sizes.split())
    places = [0]
    for gap in gaps.split():
        places.append(places[-1] + int(gap))
    costs = []
    for cuts in range(1 << (lamps - 1)):
        ends = [lamp for lamp in range(lamps - 1) if cuts >> lamp & 1] + [lamps - 1]
        starts = [0, *(end + 1 for end in ends[:-1])]
        squares = sum((places[end] - places[start]) ** 2 for start, end in zip(starts, ends, strict=True))
        costs.append(squares + (len(ends) + 1) // 2 * first + len(ends) // 2 * second)
    return str(min(costs))
