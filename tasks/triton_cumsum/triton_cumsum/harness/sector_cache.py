"""Which 32-byte sectors of memory a program finds in its cache, and how many an access moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTOR = 32
"""Bytes of the smallest piece of memory that a GPU moves."""
WORD = 4
CACHED = 128 * 1024 // SECTOR
"""Sectors that one program can find again: half of the 256 KiB that a Hopper multiprocessor has for shared memory and
cache (CUDA programming guide, compute capability 9.0), for a kernel's programs share them."""


class Cache:
    """The sectors that a program loaded last, first in first out; each program starts with none.

    ``ranges`` are the start and stop addresses of the kernel's tensors, which hold every address given later. A sector
    is known by its place in one table for all tensors, which holds the time of its load, in sectors loaded until then.
    Each tensor starts with a sector of its own, as on a GPU, wherever it lies here.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        ranges = sorted(ranges) or [(0, 0)]
        self._starts = np.array([start for start, _ in ranges], dtype=np.uint64)
        sizes = [(stop - start) // SECTOR + 1 for start, stop in ranges]
        self._firsts = np.cumsum([0, *sizes])
        self._loaded = np.zeros(self._firsts[-1], dtype=np.int64)
        self._clock = 0
        self._start = 0

    def clear(self) -> None:
        """Forget all, as another program starts."""
        self._start = self._clock

    def load(self, addresses: Any, *, joined: bool) -> tuple[int, int]:
        """Return how many distinct sectors of an access were missing and how many were there; keep the missing.

        ``joined`` says that the addresses are those of neighbours in order.
        """
        places = self._places_of(addresses, joined=joined)
        times = self._loaded[places]
        oldest = max(self._start, self._clock - CACHED)
        missing = np.flatnonzero(times <= oldest)
        if not missing.size:
            return 0, distinct(places)
        lost = places if missing.size == times.size else places[missing]
        # Times differ within the access too, for one larger than the cache does not find its own beginning again.
        stamps = np.arange(self._clock + 1, self._clock + 1 + lost.size)
        self._loaded[lost] = stamps
        self._clock += int(lost.size)
        # What occurs twice keeps the last stamp only.
        moved = int(lost.size) if joined else int(np.count_nonzero(self._loaded[lost] == stamps))
        return moved, 0 if lost is places else distinct(places[times > oldest])

    def store(self, addresses: Any, size: int) -> int:
        """Return the bytes that a store of elements of ``size`` bytes moves.

        Neighbours in order move exactly their bytes; anything else moves each distinct sector once. What two stores
        write to one sector is not joined: a GPU does not join it reliably.
        """
        if are_joined(addresses, size):
            return int(addresses.size) * size
        return distinct(self._places_of(addresses, joined=False)) * SECTOR

    def _places_of(self, addresses: Any, *, joined: bool) -> Any:
        if joined:
            tensor = int(np.searchsorted(self._starts, addresses[0], side="right")) - 1
            start, first = int(self._starts[tensor]), int(self._firsts[tensor])
            return np.arange((int(addresses[0]) - start) // SECTOR, (int(addresses[-1]) - start) // SECTOR + 1) + first
        if len(self._starts) == 1:
            return without_repeats(((addresses - self._starts[0]) // np.uint64(SECTOR)).astype(np.int64))
        tensors = np.searchsorted(self._starts, addresses, side="right") - 1
        within = ((addresses - self._starts[tensors]) // np.uint64(SECTOR)).astype(np.int64)
        return without_repeats(within + self._firsts[tensors])


def without_repeats(values: Any) -> Any:
    """Return ``values`` without those equal to the one before."""
    if values.size == 1:
        return values
    changes = np.flatnonzero(values[1:] != values[:-1])
    return values if changes.size + 1 == values.size else values[np.append(changes, values.size - 1)]


def distinct(values: Any) -> int:
    """Return how many distinct values there are."""
    return int(values.size if values.size == 1 else np.unique(values).size)


def are_joined(addresses: Any, size: int) -> bool:
    """Whether the elements of ``size`` bytes at ``addresses`` follow each other without gaps."""
    count = int(addresses.size)
    span = int(addresses[-1]) - int(addresses[0])
    return span == (count - 1) * size and bool(np.all(np.diff(addresses) == size))
