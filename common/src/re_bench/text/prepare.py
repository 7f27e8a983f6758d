"""Prepare a text by its name; make one from wheels: documents, split, vocabulary, two files of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from re_bench.data.cache import cache_directory
from re_bench.errors import UsageError
from re_bench.text.documents import read_modules, unique
from re_bench.text.paper import prepare_paper
from re_bench.text.prepared import Preparation, PreparedText, Stages, made_with
from re_bench.text.recipe import PAPER_NAME, Recipe
from re_bench.text.split import split
from re_bench.text.vocabulary import encode, train_tokenizer
from re_bench.text.wheel_text import wheel_text_entry
from re_bench.text.wheels import find_wheels, pinned_wheels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from re_bench.text.split import Split
    from re_bench.text.wheels import Wheel


def prepare(
    name: str,
    *,
    folder: Path | None = None,
    cache: Path | None = None,
    wheels: Sequence[Wheel] | None = None,
    pinned: bool = True,
    say: Callable[[str], None] = lambda _line: None,
) -> Preparation:
    """Make the text ``name`` unless it is there and whole. If another process makes it, wait for that one.

    Args:
        name: the variant and the size of the vocabulary, such as ``docstrings-2048``; or ``openwebtext``, for which
            folder, wheels and pinned mean nothing.
        folder: where to look for the wheels before the cache and the network.
        cache: where prepared data lies; :func:`cache_directory` if None.
        wheels: what to make it from; the pinned wheels if None.
        pinned: whether the outcome must have the checksums of the repository, where there are some.
        say: is told what happens, line by line.

    Raises:
        UsageError: if there is no such name, or a wheel is missing and cannot be fetched.
        ReBenchError: if the outcome does not have the checksums of the repository.
    """
    if name == PAPER_NAME:
        return prepare_paper(cache=cache, say=say)
    recipe, wheels = Recipe.named(name), pinned_wheels() if wheels is None else wheels
    cache = cache or cache_directory()
    entry = wheel_text_entry(recipe, wheels, cache, pinned=pinned)
    stages = Stages(name, say)

    def make(directory: Path) -> dict[str, Any]:
        stages.enter("wheels")
        manifest = _make(recipe, find_wheels(wheels, cache / "wheels", folder), directory, stages)
        return manifest | {"key": recipe.key(wheels), "wheels": {wheel.file: wheel.sha256 for wheel in wheels}}

    manifest = entry.prepare(make, say)
    return Preparation(PreparedText(entry.directory, manifest), stages.seconds())


def _make(recipe: Recipe, wheels: Sequence[Path], directory: Path, stages: Stages) -> dict[str, Any]:
    """Write the files of a text into ``directory`` and return its manifest, without the wheels and the key."""
    stages.enter("read")
    modules = list(unique(read_modules(wheels, recipe.variant)))
    stages.enter("split")
    sides = split(modules)
    if not sides.train or not sides.heldout:
        raise UsageError(f"{recipe.name}: the wheels have no text for training or none to hold out")
    stages.enter("vocabulary")
    tokenizer = train_tokenizer(sides.train, recipe.vocabulary)
    tokenizer.save(str(directory / "tokenizer.json"))
    stages.enter("encode")
    tokens = {
        "train": _write(tokenizer, sides.train, directory / "train.bin"),
        "heldout": _write(tokenizer, sides.heldout, directory / "heldout.bin"),
    }
    figures = {"modules": len(modules), "tokens": tokens, **_sizes(sides)}
    return {"name": recipe.name, "made_with": made_with(), "figures": figures}


def _write(tokenizer: Tokenizer, documents: Sequence[str], path: Path) -> int:
    """Write the tokens of documents and return their number."""
    with path.open("wb") as file:
        return sum(file.write(piece.tobytes()) for piece in encode(tokenizer, documents)) // 2


def _sizes(sides: Split) -> dict[str, dict[str, int]]:
    parts = {"train": sides.train, "heldout": sides.heldout, "removed": sides.removed}
    return {
        "documents": {part: len(texts) for part, texts in parts.items()},
        "bytes": {part: sum(len(text.encode()) for text in texts) for part, texts in parts.items()},
    }
