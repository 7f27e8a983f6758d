"""The kernels of the micro-benchmarks: a copy that does more work on each block, in rounds.

Each round of a kind does a known amount of one kind of work, as :mod:`work` counts it, on each element, so the time of
more rounds less that of fewer gives its rate, free of what the copy itself takes.
"""

# ruff: noqa: ANN001, ANN201, N803, PLR0917 - a kernel takes what it needs; Triton allows no other annotations

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

FEW = 1_048_576
"""Elements that the single program copies."""


@dataclass(frozen=True)
class Kind:
    """A kind of work: its ``number`` in the kernel, the words of it that one round has for each element.

    The rate is taken between the first two of the rounds, the third shows whether the time is a line. On the whole
    device the copy hides the first few rounds, so there the rounds are ``many``, and ``few`` in a single program.
    ``waits`` says that a round waits once.
    """

    number: int
    words: int
    many: tuple[int, int, int]
    few: tuple[int, int, int]
    waits: bool


KINDS = {
    "scanned": Kind(1, 1, (8, 16, 0), (0, 2, 4), waits=True),
    "reduced": Kind(2, 1, (32, 64, 0), (0, 2, 4), waits=True),
    "exchanged": Kind(3, 3, (8, 16, 0), (0, 2, 4), waits=False),
    "operations": Kind(4, 4, (16, 32, 0), (16, 32, 0), waits=False),
}


@triton.jit  # type: ignore[untyped-decorator] # triton is not followed by the type checker
def worked(values, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the values after some rounds of one kind of work; each needs the result of the one before."""
    for _ in tl.static_range(ROUNDS):
        if KIND == 1:
            values = tl.cumsum(values, 0)
        elif KIND == 2:  # noqa: PLR2004 - the numbers of KINDS
            values = values ^ tl.sum(values, 0)
        elif KIND == 3:  # noqa: PLR2004
            # Two changes of shape and one of order; added, so that the result has to be where the values are.
            values += tl.reshape(tl.trans(tl.reshape(values, (BLOCK // 32, 32))), (BLOCK,))
        else:
            values ^= values << 5
            values = (values >> 3) + 12345
    return values


@triton.jit  # type: ignore[untyped-decorator]
def by_many(source, target, length, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Work on one block in each program."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + lane, mask=lane < length, other=0)
    tl.store(target + lane, worked(values, KIND, ROUNDS, BLOCK), mask=lane < length)


@triton.jit  # type: ignore[untyped-decorator]
def by_one(source, target, length, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Work on all blocks in one program, one after the other; each needs the last value of the one before."""
    lane = tl.arange(0, BLOCK)
    for start in range(0, length, BLOCK):
        inside = start + lane < length
        values = tl.load(source + start + lane, mask=inside, other=0)
        tl.store(target + start + lane, worked(values, KIND, ROUNDS, BLOCK), mask=inside)


@triton.jit
def increment(target):  # type: ignore[no-untyped-def]
    """Add one to the first element: a kernel that does next to nothing."""
    tl.store(target, tl.load(target) + 1)


def many(x: Any, y: Any, grid: int, block: int, warps: int, number: int, rounds: int) -> None:
    """Run :func:`by_many` on all of ``x``."""
    number = number if rounds else 0  # a plain copy is compiled once
    by_many[(grid,)](x, y, x.numel(), KIND=number, ROUNDS=rounds, BLOCK=block, num_warps=warps)


def one(x: Any, y: Any, block: int, warps: int, number: int, rounds: int) -> None:
    """Run :func:`by_one` on the first :data:`FEW` elements of ``x``."""
    length, number = min(FEW, x.numel()), number if rounds else 0
    by_one[(1,)](x, y, length, KIND=number, ROUNDS=rounds, BLOCK=block, num_warps=warps, num_stages=4)
