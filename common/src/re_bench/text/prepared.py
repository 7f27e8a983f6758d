"""Prepared text on disk: the files it consists of, their tokens as arrays, and what making it took."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from tokenizers import Tokenizer

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
