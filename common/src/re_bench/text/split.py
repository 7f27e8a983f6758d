"""Training and held-out text: whole modules are held out, and what training has too is taken out of them again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.data.held_out import HELD_OUT_FROM
from re_bench.text.shingles import Overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench.text.documents import Module

HELD_OUT_ONE_IN = 8
"""One module in so many of the packages ``HELD_OUT_FROM`` is held out."""

NEAR = 0.5
"""A held-out document is a near-duplicate if at least this share of its shingles is somewhere in the training text."""


@dataclass(frozen=True)
class Split:
    """Documents in the order of the corpus."""

    train: list[str]
    heldout: list[str]
    removed: list[str]
    """Near-duplicates taken out of the held-out side."""


def is_held_out(path: str) -> bool:
    """Tell whether the module with this path within its wheel is held out, by package and SHA-256 of the path."""
    if path.partition("/")[0] not in HELD_OUT_FROM:
        return False
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big") % HELD_OUT_ONE_IN == 0


def split(modules: Iterable[Module]) -> Split:
    """Divide documents by module, then remove held-out ones that the training text has most of.

    They are removed from the held-out side. The other way round, each held-out copy of a much-copied passage would
    take its whole family out of training, and a passage put together from several training documents would stay.
    """
    train: list[str] = []
    heldout: list[str] = []
    for module in modules:
        (heldout if is_held_out(module.path) else train).extend(module.documents)
    overlap = Overlap(heldout)
    for text in train:
        overlap.see(text)
    near = [share >= NEAR for share in overlap.shares()]
    kept = [text for text, is_near in zip(heldout, near, strict=True) if not is_near]
    return Split(train, kept, [text for text, is_near in zip(heldout, near, strict=True) if is_near])
