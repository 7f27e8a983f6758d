"""The texts made from wheels: where each lies in the cache, and the checksums that the repository has for some."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.cache import CacheEntry, cache_directory
from re_bench.errors import ReBenchError
from re_bench.text.prepared import FILES, made_with, remedy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench.text.recipe import Recipe
    from re_bench.text.wheels import Wheel

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
