"""Opening prepared text: checked against its manifest and the checksums of the repository, then mapped from disk."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.data.cache import cache_directory, check_files, undamaged
from re_bench.errors import ReBenchError, UsageError
from re_bench.text.recipe import PAPER_NAME, Recipe
from re_bench.text.wheels import pinned_wheels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from re_bench.text.wheels import Wheel

__all__ = ["FILES", "PreparedText", "check_pins", "made_with", "open_text", "pinned_checksums", "place"]

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
        from re_bench.text.paper import open_paper_text  # noqa: PLC0415 - it imports this module

        return open_paper_text(cache=cache)
    recipe, wheels = Recipe.named(name), pinned_wheels() if wheels is None else wheels
    directory = place(recipe, wheels, cache)
    if not directory.is_dir():
        raise UsageError(f"{name} is not prepared in {directory.parent}; {_remedy(name)}")
    with undamaged(directory, _remedy(name)):
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        _check_wheels(directory, manifest, wheels)
        check_files(directory, {file: manifest["files"][file] for file in FILES}, _remedy(name))
        check_pins(name, manifest)
    return PreparedText(directory, manifest)


def place(recipe: Recipe, wheels: Sequence[Wheel], cache: Path | None = None) -> Path:
    """Return where a prepared text lies or will lie."""
    return (cache or cache_directory()) / "text" / f"{recipe.name}-{recipe.key(wheels)}"


@cache
def pinned_checksums() -> dict[str, dict[str, str]]:
    """Return, by name, the key and the SHA-256 of each file that the pinned wheels must give."""
    pins: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("checksums.json").read_text(encoding="utf-8"))
    return pins


def check_pins(name: str, manifest: dict[str, Any]) -> None:
    """Compare a text's files with the checksums of the repository, if it is one of those with checksums there.

    Raises:
        ReBenchError: if one differs.
    """
    pins = pinned_checksums().get(name, {})
    if pins.get("key") != manifest["key"]:
        return
    for file in FILES:
        if (found := manifest["files"][file]) != pins[file]:
            raise ReBenchError(
                f"{name}: {file} has SHA-256 {found}, the repository's checksums.json {pins[file]}. The wheels are the "
                f"pinned ones, so the tools differ: it was made with {manifest['made_with']}, this is {made_with()}; "
                "install the versions of constraints.txt and prepare again"
            )


def made_with() -> str:
    """Return the versions of what the text depends on beside the wheels."""
    try:
        tokenizers = f"tokenizers {version('tokenizers')}"
    except PackageNotFoundError:
        tokenizers = "no tokenizers"
    return f"Python {sys.version.split()[0]}, {tokenizers}, numpy {np.__version__}"


def _check_wheels(directory: Path, manifest: dict[str, Any], wheels: Sequence[Wheel]) -> None:
    expected = {wheel.file: wheel.sha256 for wheel in wheels}
    for file in sorted(expected.keys() | manifest["wheels"].keys()):
        if (found := manifest["wheels"].get(file)) != expected.get(file):
            what = f"{directory}: made from {file} with SHA-256 {found}, wanted is {expected.get(file)}"
            raise ReBenchError(f"{what}; {_remedy(manifest['name'])}")


def _remedy(name: str) -> str:
    return f"run: python -m re_bench.text prepare {name}"
