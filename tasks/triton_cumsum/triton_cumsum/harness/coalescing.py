"""What the memory instructions of a warp look like, by the layout that Triton gives to the access of a block.

Triton chooses for each access alone (its pass *coalesce*): the axis along which most elements are neighbours comes
first, a thread takes up to 16 bytes of neighbours on it, and the lanes of a warp go on along it, then along the
others, the last first. Here the same is done with the addresses themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LANES = 32
LINE = 128
"""Bytes that one instruction looks up at once."""
SECTOR = 32
VECTOR = 16


def instructions(pointers: Any, mask: Any, size: int, warps: int, *, opaque: bool) -> list[tuple[Any, Any, int]]:
    """Return the instructions of an access of elements of ``size`` bytes, one entry for each layout it may get.

    An entry has the addresses as rows, the lanes of one instruction each, which of them are active, and how many bytes
    each takes. ``opaque`` says that Triton cannot know which elements are neighbours. Among equal axes Triton 3.6
    takes the first and Triton 3.7 the last.
    """
    if any(length & (length - 1) for length in pointers.shape):  # no block of Triton's: as the next larger, in a row
        padding = (0, (1 << pointers.size.bit_length()) - pointers.size)
        pointers, mask = np.pad(pointers.reshape(-1), padding), np.pad(mask.reshape(-1), padding)
    runs = [1 if opaque else _contiguity(pointers, axis, size) for axis in range(pointers.ndim)]
    axes = range(pointers.ndim)
    orders = {tuple(sorted(axes, key=lambda axis: (-runs[axis], sign * axis))) for sign in (1, -1)}
    return [_laid_out(pointers, mask, size, warps, order, runs[order[0]]) for order in sorted(orders)]


def _laid_out(  # noqa: PLR0917 - what a layout is made of
    pointers: Any, mask: Any, size: int, warps: int, order: tuple[int, ...], run: int
) -> tuple[Any, Any, int]:
    width = max(1, min(run, VECTOR // size, pointers.size // (LANES * warps)))
    own = [width if axis == order[0] else 1 for axis in range(pointers.ndim)]
    lanes, left = [1] * pointers.ndim, LANES
    for axis in order:
        lanes[axis] = min(left, max(1, pointers.shape[axis] // own[axis]))
        left //= lanes[axis]
    shape = [
        part
        for axis, length in enumerate(pointers.shape)
        for part in (length // (lanes[axis] * own[axis]), lanes[axis], own[axis])
    ]
    firsts = range(0, len(shape), 3)
    places = [*firsts, *(3 * axis + 1 for axis in reversed(order)), *(first + 2 for first in firsts)]
    rows = (-1, LANES // left, width)
    addresses, active = (array.reshape(shape).transpose(places).reshape(rows) for array in (pointers, mask))
    return addresses[:, :, 0], active.any(axis=2), size * width


def lines(addresses: Any, active: Any) -> int:
    """Return how many distinct lines the instructions look up, each by itself."""
    looked_up = np.sort(np.where(active, addresses // np.uint64(LINE), np.uint64(2**64 - 1)), axis=1)
    changes = np.count_nonzero(looked_up[:, 1:] != looked_up[:, :-1])
    return int(changes + len(looked_up) - np.count_nonzero(~active.all(axis=1)))


def partial_sectors(addresses: Any, active: Any, size: int) -> int:
    """Return how many sectors the instructions write but in part, ``size`` bytes in each lane."""
    order = np.argsort(np.where(active, addresses, np.uint64(2**64 - 1)), axis=1)
    addresses, active = (np.take_along_axis(array, order, axis=1) for array in (addresses, active))
    ends = addresses + np.uint64(size)
    joined = active[:, 1:] & active[:, :-1] & (addresses[:, 1:] == ends[:, :-1])
    edge = np.zeros((len(active), 1), dtype=bool)
    first = addresses[active & ~np.concatenate([edge, joined], axis=1)]
    last = ends[active & ~np.concatenate([joined, edge], axis=1)]
    return partial_ends(first, last)


def partial_ends(first: Any, last: Any) -> int:
    """Return how many sectors runs of bytes from ``first`` to before ``last`` cover but in part."""
    sector = np.uint64(SECTOR)
    begins, ends = first % sector != 0, last % sector != 0
    same = first // sector == (last - np.uint64(1)) // sector
    return int(np.count_nonzero(begins | ends) + np.count_nonzero(begins & ends & ~same))


def _contiguity(pointers: Any, axis: int, size: int) -> int:
    """Return the largest power of two by whose multiples neighbours on the axis are neighbours in memory."""
    length = int(pointers.shape[axis])
    if length == 1:
        return 1
    steps = np.diff(pointers.view(np.int64), axis=axis) == size
    within = steps.all(axis=tuple(other for other in range(pointers.ndim) if other != axis))
    run = length & -length
    while run > 1 and not within[np.arange(length - 1) % run != run - 1].all():
        run //= 2
    return run
