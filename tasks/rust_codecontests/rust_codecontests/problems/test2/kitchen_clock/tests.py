# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: recipes of steps with jobs at the same time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = ("20m/3*15m;1h20m;2*10m\n", "1h/90m/40m\n")

TOP = 10**6
HOUR = 60


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield from (
        "0m\n",
        "0h\n",
        "5m\n",
        "0h65m\n",
        "59m;1m\n",
        "2*1h30m/3h\n",
        "1h1m/61m;1h0m\n",
        "1*7m/2*3m/10*1m\n",
        f"{TOP}*{TOP}h{TOP}m\n",
        f"{TOP}h/{TOP}m;3*{TOP}m\n",
    )
    yield ";".join([f"{TOP}*{TOP}h{TOP}m"] * 9000) + "\n"
    yield "/".join([f"{k}m" for k in range(25_000, 0, -1)]) + "\n"
    yield ";".join(["2m"] * 60_000) + "\n"


def job(rng: random.Random, most: int) -> str:
    """Return a random job."""
    hours, minutes = f"{rng.randint(0, most)}h", f"{rng.randint(0, most)}m"
    time = rng.choice((hours, minutes, hours + minutes))
    return f"{rng.randint(1, most)}*{time}" if rng.randrange(3) == 0 else time


def recipe(rng: random.Random, steps: int, jobs: int, most: int) -> str:
    """Return a random recipe."""
    parts = ("/".join(job(rng, most) for _ in range(rng.randint(1, jobs))) for _ in range(steps))
    return ";".join(parts) + "\n"


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for steps, jobs, most in (
        (3, 3, 70),
        (20, 4, 100),
        (200, 10, 1000),
        (3000, 6, TOP),
        (14_000, 2, 99),
        (100, 90, TOP),
    ):
        yield recipe(rng, rng.randint(steps // 2, steps), jobs, most)


def small(rng: random.Random) -> str:
    """One tiny random input."""
    return recipe(rng, rng.randint(1, 3), 3, 80)


def solve(text: str) -> str:
    """Split by the separators."""
    minutes = sum(max(map(job_minutes, step.split("/"))) for step in text.strip().split(";"))
    return f"{minutes // 60}h{minutes % 60:02}"


def job_minutes(text: str) -> int:
    """Return the minutes that a job takes."""
    times, star, time = text.rpartition("*")
    hours, letter, rest = time.rpartition("h")
    minutes = int(rest[:-1]) if rest else 0
    return (int(times) if star else 1) * (60 * int(hours) + minutes if letter else minutes)


def brute(text: str) -> str:
    """Read it with a regular expression, and let a clock run by the minute while jobs are left."""
    clock = 0
    for step in text.strip().split(";"):
        jobs = re.findall(r"(?:(\d+)\*)?(?:(\d+)h)?(?:(\d+)m)?(?:/|$)", step)[: step.count("/") + 1]
        left = [[60 * int(hours or 0) + int(minutes or 0)] * int(times or 1) for times, hours, minutes in jobs]
        clock += max(sum(rounds) for rounds in left)
    hours = 0
    while clock >= HOUR:
        hours, clock = hours + 1, clock - HOUR
    return f"{hours}h{clock // 10}{clock % 10}"
