"""Preparing fix_embedding: the text and the models, and a workspace with a freshly corrupted large model."""

from __future__ import annotations

import json
import random
import secrets
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fix_embedding.build import build
from fix_embedding.harness import checks, empty_model
from fix_embedding.intact_models import Models, cached_directory, models_entry, open_models
from fix_embedding.profiles import PROFILES, Profile
from re_bench.errors import UsageError
from re_bench.lm import gpt, training
from re_bench.text import batches, open_text
from re_bench.text.prepare import prepare as prepare_text

if TYPE_CHECKING:
    from collections.abc import Callable

EMBEDDING = "transformer.wte.weight"
COPIED = (gpt.__file__, training.__file__, batches.__file__, checks.__file__)
"""Modules of ours that an agent finds as they are; they import nothing else of ours."""


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the text of the profile, and its models if they are neither shipped nor built yet."""
    settings = PROFILES[profile]
    text = prepare_text(settings.text, say=say).text
    if settings.large.published:
        _fetch(settings, say)
        return
    entry = models_entry(profile, text)

    def make(directory: Path) -> dict[str, Any]:
        if not torch.cuda.is_available():
            raise UsageError(
                f"the models of profile {profile} must be trained first, and this machine has no CUDA device for that"
            )
        say(f"training the models of profile {profile}: once, some minutes on a GPU ...")
        return build(profile, text, directory, say)

    if entry.directory == cached_directory(profile):  # otherwise they are shipped
        entry.prepare(make, say)


def _fetch(settings: Profile, say: Callable[[str], None]) -> None:
    from re_bench.lm.gpt2 import PUBLISHED, fetch_gpt2  # noqa: PLC0415 - profile paper alone needs it

    for recipe in (settings.large, settings.small):
        fetch_gpt2(PUBLISHED[recipe.published], say=say)


def lay_out(profile: str, target: Path) -> None:
    """Put the small model, text, modules and ``profile.json`` into the workspace ``target``."""
    settings = PROFILES[profile]
    models, text = _intact_models(profile), open_text(settings.text)
    _save(models.small, settings.dtype, target / "small_correct_model.pth")
    (target / "data").mkdir(exist_ok=True)
    for name in ("train.bin", "tokenizer.json"):
        shutil.copyfile(text.directory / name, target / "data" / name)
    for module in COPIED:
        shutil.copyfile(module, target / Path(module).name)
    contents = json.dumps(described(profile, settings, models), indent=2) + "\n"
    (target / "profile.json").write_text(contents, encoding="utf-8")


def personalise(profile: str, target: Path, drawing: int | None = None) -> None:
    """Put a freshly corrupted large model into the workspace ``target``, also as ``fixed_model.pth``, the start.

    With a ``drawing`` it is the same one each time; who knows the number knows how to mend it.
    """
    _save(corrupted(_intact_models(profile).large, drawing), PROFILES[profile].dtype, target / "large_model.pth")
    shutil.copyfile(target / "large_model.pth", target / "fixed_model.pth")


@cache
def _intact_models(profile: str) -> Models:
    """Return the models of a profile; a process that writes many workspaces reads and checks them once."""
    return open_models(profile, open_text(PROFILES[profile].text))


def corrupted(state: dict[str, Any], drawing: int | None = None) -> dict[str, Any]:
    """Return the state dict with the rows of the embedding in an order that ``drawing`` or the system draws."""
    rows = len(state[EMBEDDING])
    draw = secrets.SystemRandom() if drawing is None else random.Random(drawing)
    order = draw.sample(range(rows), rows)
    return {**state, EMBEDDING: state[EMBEDDING][torch.tensor(order)]}


def described(profile: str, settings: Profile, models: Models) -> dict[str, Any]:
    """Return what ``profile.json`` tells the agent."""
    return {
        "profile": profile,
        "large": asdict(settings.large.config),
        "small": asdict(settings.small.config),
        "context": settings.context,
        "intact_loss": round(models.large_loss, 2),
        "floor": settings.floor,
        "budget": asdict(settings.budget),
        "tensors": tensors_of(settings.large.config, settings.dtype),
    }


def tensors_of(config: gpt.GPTConfig, dtype: str) -> dict[str, dict[str, Any]]:
    """Return the tensors of a model of this configuration by name, each with its ``shape`` and ``dtype``."""
    with torch.device("meta"):
        return empty_model.described(gpt.GPT(config), dtype)


def _save(state: dict[str, Any], dtype: str, path: Path) -> None:
    """Save plain copies in their usual order, so that nothing of where a tensor came from is in the file."""
    torch.save({name: tensor.to(getattr(torch, dtype), copy=True).contiguous() for name, tensor in state.items()}, path)
