"""The intact models, large and small: where they lie, and how they are opened."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from fix_embedding.profiles import PROFILES
from re_bench.data.cache import cache_directory, check_files, undamaged
from re_bench.errors import ReBenchError, UsageError

__all__ = ["NAMES", "RECORD", "Models", "cached", "directory_of", "open_models", "shipped"]

NAMES = ("large", "small")
"""The models of a profile."""

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
    text: dict[str, str] | None
    """SHA-256 of the files of the text that they were trained on; None for published models."""


def directory_of(profile: str) -> Path:
    """Return the directory of the trained models of a profile: with the task where they are shipped, else the cache."""
    return shipped(profile) if (shipped(profile) / "large.safetensors").exists() else cached(profile)


def shipped(profile: str) -> Path:
    """Return the directory of models that come with the task; most profiles have none there."""
    return Path(__file__).parent / "models" / profile


def cached(profile: str) -> Path:
    """Return the directory of models that are built on this machine."""
    return cache_directory() / "fix_embedding" / profile


def open_models(profile: str) -> Models:
    """Return the models of a profile, after checking every byte of their files.

    Raises:
        UsageError: if they are not here.
        ReBenchError: if a file is not what it must be.
    """
    if PROFILES[profile].large.published:
        return _published(profile)
    directory = directory_of(profile)
    if not (directory / RECORD).is_file():
        raise UsageError(f"{directory / RECORD} is missing; run: re-bench prepare fix_embedding --profile {profile}")
    remedy = f"run, in the task's folder: python tools/build_models.py --profile {profile}"
    with undamaged(directory, remedy):
        record = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        check_files(directory, record["files"], remedy)
        large, small = (load_file(directory / f"{name}.safetensors") for name in NAMES)
        return Models(large, small, float(record["models"]["large"]["heldout_loss"]), dict(record["text"]["files"]))


def _published(profile: str) -> Models:
    from re_bench.lm.gpt2 import PUBLISHED, open_gpt2  # noqa: PLC0415 - this profile alone needs it

    states = {}
    for name in NAMES:
        recipe = getattr(PROFILES[profile], name)
        config, states[name] = open_gpt2(PUBLISHED[recipe.published])
        if config != recipe.config:
            raise ReBenchError(f"{recipe.published} has {config}, profiles.py says {recipe.config}")
    return Models(states["large"], states["small"], _PUBLISHED_LOSS, text=None)


_PUBLISHED_LOSS = 2.55
"""Of GPT-2 XL on OpenWebText, as the original task says."""
