"""Making prepared text: wheels to documents, to a split, to a vocabulary, to two files of tokens."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from re_bench.data.cache import cache_directory, file_lock, new_directory
from re_bench.data.files import sha256_of
from re_bench.errors import ReBenchError, UsageError
from re_bench.text.documents import read_modules, unique
from re_bench.text.prepared import FILES, PreparedText, check_pins, made_with, open_text, place
from re_bench.text.recipe import PAPER_NAME, Recipe
from re_bench.text.split import split
from re_bench.text.vocabulary import encode, train_tokenizer
from re_bench.text.wheels import find_wheels, pinned_wheels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from re_bench.text.split import Split
    from re_bench.text.wheels import Wheel

__all__ = ["Preparation", "Stages", "prepare"]


@dataclass
class Preparation:
    """The outcome of :func:`prepare`."""

    text: PreparedText
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each stage; empty if it was prepared before."""


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
        from re_bench.text.paper import prepare_paper  # noqa: PLC0415 - it imports this module

        return prepare_paper(cache=cache, say=say)
    recipe, wheels = Recipe.named(name), pinned_wheels() if wheels is None else wheels
    cache = cache or cache_directory()
    target = place(recipe, wheels, cache)
    with file_lock(target.with_name(f".{target.name}.lock")):
        if target.exists():
            try:
                return Preparation(open_text(name, cache=cache, wheels=wheels))
            except ReBenchError as error:
                say(f"{name}: made again, because of this: {error}")
        stages = Stages(name, say)
        stages.enter("wheels")
        paths = find_wheels(wheels, cache / "wheels", folder)
        with new_directory(target) as directory:
            manifest = _make(recipe, paths, directory, stages)
            manifest |= {"key": recipe.key(wheels), "wheels": {wheel.file: wheel.sha256 for wheel in wheels}}
            if pinned:
                check_pins(name, manifest)
            (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        return Preparation(PreparedText(target, manifest), stages.leave())


def _make(recipe: Recipe, wheels: Sequence[Path], directory: Path, stages: Stages) -> dict[str, Any]:
    """Write the files of a text into ``directory`` and return its manifest, all but the wheels and the key."""
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
    files = {file: sha256_of(directory / file) for file in FILES}
    figures = {"modules": len(modules), "tokens": tokens, **_sizes(sides)}
    return {"name": recipe.name, "made_with": made_with(), "files": files, "figures": figures}


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


class Stages:
    """Announces and times the stages of making a text."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say = name, say
        self._entered: list[tuple[str, float]] = []

    def enter(self, stage: str) -> None:
        """End the stage before and announce this one."""
        self._entered.append((stage, time.monotonic()))
        self._say(f"{self._name}: {stage} ...")

    def report(self, progress: str) -> None:
        """Say how far the present stage is."""
        self._say(f"{self._name}: {self._entered[-1][0]}: {progress}")

    def leave(self) -> dict[str, float]:
        """Return the seconds of each stage, the last one ending now."""
        ends = [start for _stage, start in self._entered[1:]] + [time.monotonic()]
        return {stage: round(end - start, 2) for (stage, start), end in zip(self._entered, ends, strict=True)}
