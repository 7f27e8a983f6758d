# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of moonlit_calendar: day numbers and dates in an invented calendar."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "3 5 4 12 2\n10 8 9\n6\nN 1\nN 27\nN 28\nD 4 2 9\nD 3 2 9\nN 1000\n",
    "2 7 2 4 1\n3 4\n5\nN 7\nN 11\nD 2 1 4\nD 5 3 1\nD 100000000000 2 4\n",
)
NEAR = 5000  # Questions about later days or years are too far for the written-out calendar.


def _case(rules: tuple[int, int, int, int], months: list[int], questions: list[str]) -> str:
    """Write one input; rules are W, A, B and L."""
    head = " ".join(map(str, (len(months), *rules)))
    return "\n".join([head, " ".join(map(str, months)), str(len(questions)), *questions]) + "\n"


def _questions(rng: random.Random, months: list[int], count: int, last: int) -> list[str]:
    """Return random questions about days up to number last."""
    out = []
    year = max(1, min(10**11, last // sum(months)))
    for _ in range(count):
        if rng.randrange(2):
            out.append(f"N {rng.randint(1, last)}")
        else:
            month = rng.randint(1, len(months) + (not rng.randrange(10)))
            length = months[min(month, len(months)) - 1]
            day = rng.choice([1, length, length + 1, rng.randint(1, length)])
            out.append(f"D {rng.randint(1, year)} {month} {day}")
    return out


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    rng = random.Random(9)
    yield _case((1, 1, 1, 1), [1], ["N 1", "N 1000000000000000", "D 100000000000 1 1", "D 1 1 2", "D 1 2 1"])
    yield _case((7, 1, 1000, 1), [1], ["N 1", "N 2", "N 3", "N 2000", "N 1999", "N 1000000000000000", "D 1000 1 2"])
    yield _case((7, 4, 100, 2), [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], [f"N {x}" for x in range(1400, 1500)])
    dates = [f"D {y} 2 {d}" for y in (4, 6, 12, 24, 3, 60) for d in (28, 29, 30)]
    yield _case((7, 4, 6, 2), [31, 28, 31], dates + [f"N {90 * y + k}" for y in range(1, 30) for k in range(8)])
    yield _case((6, 6, 4, 1), [5, 5], [f"N {x}" for x in range(1, 200)])
    yield _case((10, 5, 5, 3), [7, 7, 7], [f"N {x}" for x in range(95, 135)])
    yield _case((100, 3, 7, 50), [1000] * 50, [f"D 100000000000 {m} {d}" for m in (1, 50, 51) for d in (1, 1000, 1001)])
    yield _case((9, 2, 3, 1), [1, 1], [f"N {x}" for x in range(1, 120)])
    yield _case((97, 999, 1000, 1), [1, 2], _questions(rng, [1, 2], 10000, 10**15))
    yield _case((13, 1000, 999, 4), [30] * 12, _questions(rng, [30] * 12, 9000, 10**15))
    yield _case((5, 12, 18, 2), [3, 2], _questions(rng, [3, 2], 10000, 10**6))
    yield _case((7, 2, 1000, 1), [1], [f"N {10**15 - i}" for i in range(10000)])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for size, count, last in (
        (2, 5, 60),
        (3, 20, 400),
        (5, 100, 10**5),
        (12, 700, 10**9),
        (30, 3000, 10**12),
        (50, 9000, 10**15),
    ):
        months = [rng.randint(1, 10 * size) for _ in range(size)]
        rules = (rng.randint(2, 30), rng.randint(2, size + 3), rng.randint(2, 5 * size), rng.randint(1, size))
        yield _case(rules, months, _questions(rng, months, count, last))


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    months = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    rules = (rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 6), rng.randint(1, len(months)))
    return _case(rules, months, _questions(rng, months, 6, 120))


def solve(text: str) -> str:
    """Count leap years by inclusion and exclusion and find the year by bisection."""
    tokens = text.split()
    size, week, a, b, leap_month = map(int, tokens[:5])
    months = [int(t) for t in tokens[5 : 5 + size]]
    both = math.lcm(a, b)
    base = sum(months)
    place = 6 + size
    out = []

    def before(year: int) -> int:
        """Count the days before the year."""
        return (year - 1) * base + (year - 1) // a - (year - 1) // both

    def lengths(year: int) -> list[int]:
        """Return the lengths of the year's months."""
        extra = int(year % a == 0 and year % b != 0)
        return [length + extra * (i == leap_month - 1) for i, length in enumerate(months)]

    while place < len(tokens):
        if tokens[place] == "N":
            number = int(tokens[place + 1])
            place += 2
            low, high = 1, number // base + 2
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if before(middle) < number else (low, middle)
            day = number - before(low)
            month = 1
            for length in lengths(low):
                if day <= length:
                    break
                day -= length
                month += 1
            out.append(f"{low} {month} {day} {(number - 1) % week + 1}")
        else:
            year, month, day = (int(t) for t in tokens[place + 1 : place + 4])
            place += 4
            if month > size or day > lengths(year)[month - 1]:
                out.append("none")
            else:
                number = before(year) + sum(lengths(year)[: month - 1]) + day
                out.append(f"{number} {(number - 1) % week + 1}")
    return "\n".join(out) + "\n"


def brute(text: str) -> str:
    """Write the calendar out day by day (as far as small questions need) and look everything up."""
    lines = [line.split() for line in text.splitlines()]
    size, week, a, b, leap_month = map(int, lines[0])
    questions = lines[3:]
    far = [q for q in questions if int(q[1]) > NEAR]
    if far:
        questions = [q for q in questions if q not in far]
    days: list[tuple[int, int, int]] = []
    for year in range(1, NEAR + 1):
        for month in range(1, size + 1):
            length = int(lines[1][month - 1])
            if month == leap_month and year % a == 0 and year % b:
                length += 1
            days.extend((year, month, day) for day in range(1, length + 1))
        if len(days) > NEAR and all(year > int(q[1]) for q in questions if q[0] == "D"):
            break
    numbers = {date: i for i, date in enumerate(days)}
    out = []
    for q in lines[3:]:
        if q in far:
            out.append(solve("\n".join(map(" ".join, [*lines[:2], ["1"], q]))).strip())
        elif q[0] == "N":
            i = int(q[1]) - 1
            out.append(" ".join(map(str, (*days[i], i % week + 1))))
        else:
            found = numbers.get((int(q[1]), int(q[2]), int(q[3])))
            out.append("none" if found is None else f"{found + 1} {found % week + 1}")
    return "\n".join(out) + "\n"
