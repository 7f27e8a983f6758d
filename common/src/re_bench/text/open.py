"""Open a prepared text by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.text.paper import open_paper_text
from re_bench.text.prepared import PreparedText
from re_bench.text.recipe import PAPER_NAME, Recipe
from re_bench.text.wheel_text import wheel_text_entry
from re_bench.text.wheels import pinned_wheels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from re_bench.text.wheels import Wheel


def open_text(name: str, *, cache: Path | None = None, wheels: Sequence[Wheel] | None = None) -> PreparedText:
    """Open the prepared text ``name``, such as ``docstrings-2048``, after checking every byte of it.

    Args:
        name: the variant and the size of the vocabulary; or ``openwebtext``, for which wheels mean nothing.
        cache: where prepared data lies; :func:`cache_directory` if None.
        wheels: what it must be made from; the pinned wheels if None.

    Raises:
        UsageError: if there is no such name, or it is not prepared here.
        ReBenchError: if a file or a wheel is not what it must be.
    """
    if name == PAPER_NAME:
        return open_paper_text(cache=cache)
    entry = wheel_text_entry(Recipe.named(name), pinned_wheels() if wheels is None else wheels, cache)
    return PreparedText(entry.directory, entry.open())
