"""Prepared text on disk: its name and key, its place in the cache with pinned checksums, and its tokens as arrays."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from re_bench.data.cache import CacheEntry, cache_directory, cache_key
from re_bench.errors import ReBenchError, UsageError
from re_bench.text.corpus import MINIMUM, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from re_bench.text.corpus import Wheel

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


FILES = ("train.bin", "heldout.bin", "tokenizer.json")
"""What a prepared text consists of, beside ``manifest.json``."""


@dataclass(frozen=True)
class PreparedText:
    """A prepared text on disk, whose files have been checked."""

    directory: Path
    manifest: dict[str, Any]
    """Name, key, wheels, SHA-256 of the files, figures, and the versions it was made with."""

    @property
    def train(self) -> NDArray[np.uint16]:
        """The training tokens, one document after the other, as a read-only map of the file."""
        return np.memmap(self.directory / "train.bin", "<u2", "r")

    @property
    def heldout(self) -> NDArray[np.uint16]:
        """The held-out tokens, in the same form."""
        return np.memmap(self.directory / "heldout.bin", "<u2", "r")

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, which needs the package tokenizers; the tokens alone do not."""
        from re_bench.text.vocabulary import open_tokenizer  # noqa: PLC0415 - see above

        return open_tokenizer(self.directory / "tokenizer.json")


@dataclass
class Preparation:
    """The outcome of preparing a text."""

    text: PreparedText
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each stage; empty if it was prepared before."""


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

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage that was entered, the last one ending now."""
        ends = [*(start for _stage, start in self._entered[1:]), time.monotonic()]
        return {stage: round(end - start, 2) for (stage, start), end in zip(self._entered, ends, strict=False)}


def made_with() -> str:
    """Return the versions of what the text depends on beside the wheels."""
    try:
        tokenizers = f"tokenizers {version('tokenizers')}"
    except PackageNotFoundError:
        tokenizers = "no tokenizers"
    return f"Python {sys.version.split()[0]}, {tokenizers}, numpy {np.__version__}"


def remedy(name: str) -> str:
    """Return what a person should do when the text ``name`` is missing or damaged."""
    return f"run: python -m re_bench.text prepare {name}"


CHECKSUMS = Path(__file__).with_name("checksums.json")
"""By name, the key and the SHA-256 of each file that the pinned wheels must give."""


def wheel_text_entry(
    recipe: Recipe, wheels: Sequence[Wheel], cache_root: Path | None = None, *, pinned: bool = True
) -> CacheEntry:
    """Return the entry in the cache of a text that is made from ``wheels``.

    Args:
        recipe: the variant and the size of the vocabulary.
        wheels: what it is made from.
        cache_root: where prepared data lies; :func:`cache_directory` if None.
        pinned: whether its files must have the checksums of the repository, where there are some.
    """
    directory = (cache_root or cache_directory()) / "text" / f"{recipe.name}-{recipe.key(wheels)}"

    def check(directory: Path, manifest: Mapping[str, Any]) -> None:
        _check_wheels(directory, manifest, wheels)
        if pinned:
            _check_pins(manifest)

    return CacheEntry(directory, recipe.name, FILES, remedy(recipe.name), check=check)


@cache
def pinned_checksums() -> dict[str, dict[str, str]]:
    """Return the contents of :data:`CHECKSUMS`."""
    pins: dict[str, dict[str, str]] = json.loads(CHECKSUMS.read_text(encoding="utf-8"))
    return pins


def _check_pins(manifest: Mapping[str, Any]) -> None:
    """Compare a text's files with the checksums of the repository, if it is one of those with checksums there."""
    pins = pinned_checksums().get(manifest["name"], {})
    if pins.get("key") != manifest["key"]:
        return
    for file in FILES:
        if (actual := manifest["files"][file]) != pins[file]:
            raise ReBenchError(
                f"{manifest['name']}: {file} has SHA-256 {actual}, the repository's checksums.json {pins[file]}. The "
                f"wheels are the pinned ones, so the tools differ: it was made with {manifest['made_with']}, this is "
                f"{made_with()}; install the versions of constraints.txt and prepare again"
            )


def _check_wheels(directory: Path, manifest: Mapping[str, Any], wheels: Sequence[Wheel]) -> None:
    expected = {wheel.file: wheel.sha256 for wheel in wheels}
    for file in sorted(expected.keys() | manifest["wheels"].keys()):
        if (actual := manifest["wheels"].get(file)) != expected.get(file):
            raise ReBenchError(
                f"{directory}: made from {file} with SHA-256 {actual}, wanted is {expected.get(file)}; "
                f"{remedy(manifest['name'])}"
            )
