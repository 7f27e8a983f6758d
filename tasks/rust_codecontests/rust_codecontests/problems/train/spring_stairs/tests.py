# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
"""Tests of the problem: climbs with no two equal jumps in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PUBLIC: tuple[str, ...] = (
    "4 3 0\n\n",
    "6 4 2\n5 3\n",
    "3 3 1\n3\n",
)

MODULUS = 10**9 + 7


def _text(steps: int, jump: int, broken: list[int]) -> str:
    """The input that describes the staircase."""
    return f"{steps} {jump} {len(broken)}\n{' '.join(map(str, broken))}\n"


def private() -> Iterator[str]:
    """Corner cases and the limits' extremes."""
    yield _text(1, 1, [])
    yield _text(1, 1000, [])
    yield _text(1, 5, [1])
    yield _text(2, 1, [])
    yield _text(2, 2, [1])
    yield _text(3, 2, [])
    yield _text(7, 1000, [])
    yield _text(5000, 1, [])
    yield _text(5000, 2, [])
    yield _text(5000, 1000, [])
    yield _text(4000, 1000, list(range(4000, 0, -1)))
    yield _text(3000, 1000, list(range(1000, 2000)))
    yield _text(2000, 1000, list(range(1001, 2000)) + list(range(1, 1000)))
    yield _text(300, 3, [])
    yield _text(60, 60, [59])


def generated(rng: random.Random) -> Iterator[str]:
    """Random inputs of growing size."""
    for steps, jump, share in (
        (8, 3, 0.1),
        (15, 6, 0.2),
        (40, 10, 0.3),
        (200, 150, 0.5),
        (1000, 30, 0.1),
        (3000, 1000, 0.2),
        (5000, 300, 0.05),
    ):
        yield _text(steps, jump, rng.sample(range(1, steps), int(steps * share)))


def small(rng: random.Random) -> str:
    """One tiny random input."""
    steps = rng.randint(1, 10)
    return _text(steps, rng.randint(1, 6), rng.sample(range(1, steps + 1), rng.randint(0, min(3, steps))))


def solve(text: str) -> str:
    """Rows over the last jump: all ways to a step less those that end with the same length."""
    steps, jump, _, *broken = map(int, text.split())
    bad = set(broken)
    # rows[i][l - 1]: ways to step i with a last jump of length l; rows out of reach are dropped.
    rows: list[list[int]] = [[0] * jump]
    totals = [1]
    for step in range(1, steps + 1):
        if step in bad:
            rows.append([0] * jump)
            totals.append(0)
            continue
        row = [totals[step - size] - rows[step - size][size - 1] for size in range(1, min(jump, step) + 1)]
        rows.append([count % MODULUS for count in row] + [0] * (jump - len(row)))
        totals.append(sum(row) % MODULUS)
        if step >= jump:
            rows[step - jump] = []
    return str(totals[steps])


def brute(text: str) -> str:
    """List all sequences of jumps."""
    steps, jump, _, *broken = map(int, text.split())
    done = 0
    climbs: list[list[int]] = [[]]
    while climbs:
        climb = climbs.pop()
        at = sum(climb)
        done += at == steps
        longer = [[*climb, size] for size in range(1, jump + 1) if at + size <= steps and at + size not in broken]
        climbs += [new for new in longer if new[-2:-1] != new[-1:]]
    return str(done % MODULUS)
