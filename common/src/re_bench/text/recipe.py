"""What a prepared text is made from, as a name like ``docstrings-2048`` and a key that changes with the making."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from re_bench.data.cache import cache_key
from re_bench.errors import UsageError
from re_bench.text.documents import MINIMUM, Variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.text.wheels import Wheel

SMALLEST = 257
"""A vocabulary holds all bytes and the end of a text."""

LARGEST = 1 << 16
"""Tokens are stored as 16-bit integers."""

PAPER_NAME = "openwebtext"
"""The text of profile ``paper``, which is made otherwise: see :mod:`re_bench.text.paper`."""

_VERSION = 2  # raise it with every change of the making, which changes the key


@dataclass(frozen=True)
class Recipe:
    """A variant of the text and the size of its vocabulary."""

    variant: Variant
    vocabulary: int

    @classmethod
    def named(cls, name: str) -> Recipe:
        """Return the recipe called ``VARIANT-SIZE``.

        Raises:
            UsageError: if there is no such variant, or no vocabulary can have that size.
        """
        match = re.fullmatch(r"([a-z]+)-([1-9][0-9]{0,5})", name)
        if not match or match[1] not in MINIMUM or not SMALLEST <= int(match[2]) <= LARGEST:
            variants = ", ".join(f"{variant}-SIZE" for variant in MINIMUM)
            raise UsageError(
                f"no text is called {name!r}; expected one of {variants} with a size from {SMALLEST} to {LARGEST}"
            )
        return cls(cast("Variant", match[1]), int(match[2]))

    @property
    def name(self) -> str:
        """The variant and the size, such as ``docstrings-2048``."""
        return f"{self.variant}-{self.vocabulary}"

    def key(self, wheels: Sequence[Wheel]) -> str:
        """Return twelve hex digits that differ with the recipe, how it is carried out, and the wheels."""
        return cache_key(_VERSION, self.variant, self.vocabulary, [wheel.sha256 for wheel in wheels])
