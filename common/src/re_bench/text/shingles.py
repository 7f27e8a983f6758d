"""How much of a text occurs in another, by shingles: all runs of 32 letters and digits, whatever stands between them.

Every shingle is compared, none is sampled: the held-out side is small, so that exactness costs seconds only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WIDTH = 32
"""Letters and digits in a shingle; a power of two."""

_BASE = 0x9E3779B97F4A7C15  # odd; 2^64 over the golden ratio
_KEPT = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + bytes(range(128, 256))
_DROPPED = bytes(sorted(set(range(256)) - set(_KEPT)))
_LOWER = bytes(range(256)).lower()
_TABLE_BITS = 27


def shingles(text: str) -> NDArray[np.uint64]:
    """Return a 64-bit hash of every shingle of a text, in order; a shorter text is one shingle.

    Case, space and punctuation do not count. Letters beyond ASCII count as their UTF-8 bytes.
    """
    letters = text.encode().translate(_LOWER, _DROPPED).ljust(WIDTH, b"\0")
    hashes = np.frombuffer(letters, np.uint8).astype(np.uint64) + np.uint64(1)
    width, factor = 1, _BASE
    while width < WIDTH:  # the hash of a run is made from those of its halves
        hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
        width, factor = 2 * width, factor * factor % 2**64
    mixed: NDArray[np.uint64] = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(_BASE)
    return mixed


class Overlap:
    """Which shingles of some documents occur in texts that are seen one after another."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._documents = [_different(shingles(text)) for text in documents]
        self._all = _different(np.concatenate([*self._documents, np.empty(0, np.uint64)]))
        self._seen = np.zeros(len(self._all), np.bool_)
        # Most shingles that pass are in no document: this table dismisses them faster than a search can.
        self._table = np.zeros(1 << _TABLE_BITS, np.bool_)
        self._table[self._all >> np.uint64(64 - _TABLE_BITS)] = True

    def see(self, text: str) -> None:
        """Note every shingle of ``text``."""
        passing = shingles(text)
        passing = passing[self._table[passing >> np.uint64(64 - _TABLE_BITS)]]
        if len(passing) == 0:
            return
        positions = np.minimum(np.searchsorted(self._all, passing), len(self._all) - 1)
        self._seen[positions[self._all[positions] == passing]] = True

    def shares(self) -> list[float]:
        """Return, for each document, the share from 0 to 1 of its different shingles that were seen."""
        return [float(self._seen[np.searchsorted(self._all, hashes)].mean()) for hashes in self._documents]


def _different(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each hash once, sorted; numpy.unique of numpy 2.4 takes ten times as long."""
    ordered = np.sort(hashes)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    different: NDArray[np.uint64] = ordered[first]
    return different
