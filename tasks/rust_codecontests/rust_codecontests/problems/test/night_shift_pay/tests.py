# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of night_shift_pay: pay for shifts by minute, with a night rate and a break."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "2 3 5\n08:00-12:30\n21:50-22:10\n",
    "3 1 2\n23:00-01:00\n05:00-06:30\n08:00-17:00\n",
)
HOUR = 60
DAY = 24 * HOUR
PAID_IN_FULL = 6 * HOUR


def _clock(minute: int) -> str:
    """Write a minute of the day as HH:MM."""
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


def _case(a: int, b: int, shifts: list[tuple[int, int]], separator: str = "\n") -> str:
    """Write one input; a shift is (begin, length in minutes)."""
    words = [f"{_clock(begin)}-{_clock(begin + length)}" for begin, length in shifts]
    return f"{len(shifts)} {a} {b}\n{separator.join(words)}\n"


def private() -> Iterator[str]:
    """Yield hand-made corner cases."""
    yield _case(7, 9, [(0, DAY)])
    yield _case(1, 1000, [(22 * 60, 1)])
    yield _case(1, 1000, [(22 * 60 - 1, 1)])
    yield _case(1, 1000, [(6 * 60 - 1, 1), (6 * 60, 1)])
    yield _case(2, 3, [(600, 360)])
    yield _case(2, 3, [(600, 361)])
    yield _case(2, 3, [(1439, 2), (1439, 1), (1439, 361)])
    yield _case(5, 11, [(21 * 60 + 45, 375)])
    yield _case(5, 11, [(23 * 60, 390), (15 * 60 + 50, 390)])
    yield _case(4, 6, [(60, 500), (700, 200), (1300, 300), (1000, DAY)], " ")
    yield _case(1000000, 999999, [(i % DAY, DAY) for i in range(20000)])
    yield _case(999983, 1000000, [(i * 7 % DAY, i % DAY + 1) for i in range(20000)], " ")
    yield _case(13, 17, [(i, i % 50 + 350) for i in range(DAY)])


def generated(rng: random.Random) -> Iterator[str]:
    """Yield random inputs of growing size."""
    for n in (1, 3, 10, 50, 400, 3000, 15000):
        shifts = [(rng.randrange(DAY), rng.randint(1, DAY)) for _ in range(n)]
        yield _case(rng.randint(1, 10**6), rng.randint(1, 10**6), shifts, rng.choice("\n "))


def small(rng: random.Random) -> str:
    """Return one tiny random input."""
    shifts = [(rng.randrange(DAY), rng.choice([1, 60, 359, 360, 361, 400, DAY])) for _ in range(rng.randint(1, 3))]
    return _case(rng.randint(1, 5), rng.randint(1, 5), shifts)


def solve(text: str) -> str:
    """Sum differences of night minutes counted from midnight."""
    first, *shifts = text.split()[0:1] + text.split()[3:]
    a, b = map(int, text.split()[1:3])
    total = 0

    def nights(until: int) -> int:
        """Count the night minutes in [0, until)."""
        rest = until % DAY
        return until // DAY * 480 + min(rest, 360) + max(0, rest - 1320)

    for shift in shifts[: int(first)]:
        begin, end = (int(time[:2]) * 60 + int(time[3:]) for time in shift.split("-"))
        length = (end - begin - 1) % DAY + 1
        if length > PAID_IN_FULL:
            length -= 30
        night = nights(begin + length) - nights(begin)
        total += night * b + (length - night) * a
    return f"{total}\n"


def brute(text: str) -> str:
    """Walk through every shift on a clock, minute by minute."""
    count, a, b, *shifts = text.split()
    total = 0
    for shift in shifts[: int(count)]:
        now, end = shift.split("-")
        paid: list[int] = []
        while not paid or now != end:
            paid.append(int(b) if now >= "22:00" or now < "06:00" else int(a))
            hour, minute = map(int, now.split(":"))
            minute += 1
            if minute == HOUR:
                hour, minute = (hour + 1) % 24, 0
            now = f"{hour:02}:{minute:02}"
        total += sum(paid[:-30] if len(paid) > PAID_IN_FULL else paid)
    return f"{total}\n"
