"""The intact models, large and small: where they lie, and how they are opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file

from fix_embedding.profiles import PROFILES
from re_bench.data.cache import CacheEntry, cache_directory, undamaged
from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.text import PreparedText

NAMES = ("large", "small")
"""The models of a profile."""

FILES = tuple(f"{name}.safetensors" for name in NAMES)
"""The file of each."""

RECORD = "models.json"
"""The file beside them that says how they came about: SHA-256 of their files, recipes, losses, hardware, versions."""


@dataclass(frozen=True)
class Models:
    """The intact models of a profile."""

    large: dict[str, Any]
    """A state dict, as ``small``."""
    small: dict[str, Any]
    large_loss: float
    """Of the large model on the scored text."""


def shipped_directory(profile: str) -> Path:
    """Return the directory of models that come with the task; most profiles have none there."""
    return Path(__file__).parent / "models" / profile


def cached_directory(profile: str) -> Path:
    """Return the directory of models that are built on this machine."""
    return cache_directory() / "fix_embedding" / profile


def models_entry(profile: str, text: PreparedText) -> CacheEntry:
    """Return the trained models of a profile: with the task where they are shipped, else in the cache.

    When it is opened, they must have been trained on ``text``: for another one their tokens mean nothing.
    """
    directory, command = cached_directory(profile), "re-bench prepare fix_embedding"
    if (shipped_directory(profile) / FILES[0]).exists():
        directory, command = shipped_directory(profile), "python tasks/fix_embedding/tools/build_models.py"
    remedy = f"run: {command} --profile {profile}"

    def check(directory: Path, record: Mapping[str, Any]) -> None:
        if record["text"]["files"] != text.manifest["files"]:
            raise ReBenchError(f"{directory}: trained on another text than {text.directory}; {remedy}")

    title = f"the model pair of profile {profile}"
    return CacheEntry(directory, title, FILES, remedy, check=check, manifest_name=RECORD)


def open_models(profile: str, text: PreparedText) -> Models:
    """Return the models of a profile, after checking every byte of their files.

    Args:
        profile: a name in :data:`PROFILES`.
        text: what they must have been trained on, unless they are published ones.

    Raises:
        UsageError: if they are not here.
        ReBenchError: if a file is not what it must be, or they were trained on another text.
    """
    if PROFILES[profile].large.published:
        return _published(profile)
    entry = models_entry(profile, text)
    record = entry.open()
    with undamaged(entry.directory, entry.remedy):
        large, small = (load_file(entry.directory / file) for file in FILES)
        return Models(large, small, float(record["models"]["large"]["heldout_loss"]))


def _published(profile: str) -> Models:
    from re_bench.lm.gpt2 import PUBLISHED, open_gpt2  # noqa: PLC0415 - this profile alone needs it

    states = {}
    for name in NAMES:
        recipe = getattr(PROFILES[profile], name)
        config, states[name] = open_gpt2(PUBLISHED[recipe.published])
        if config != recipe.config:
            raise ReBenchError(f"{recipe.published} has {config}, profiles.py says {recipe.config}")
    return Models(states["large"], states["small"], _PUBLISHED_LOSS)


_PUBLISHED_LOSS = 2.55
"""Of GPT-2 XL on OpenWebText, as the original task says."""
