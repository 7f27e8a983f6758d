"""Preparing fix_embedding: the text and the models, and a workspace with a freshly corrupted large model."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from fix_embedding.build import build
from fix_embedding.harness import checks
from fix_embedding.intact_models import Models, cached, directory_of, open_models
from fix_embedding.profiles import PROFILES, Profile
from fix_embedding.tensors import tensors_of
from re_bench.data.cache import file_lock
from re_bench.errors import ReBenchError, UsageError
from re_bench.lm import gpt, training
from re_bench.text import PreparedText, batches, open_text
from re_bench.text.prepare import prepare as prepare_text

if TYPE_CHECKING:
    from collections.abc import Callable

EMBEDDING = "transformer.wte.weight"
COPIED = (gpt.__file__, training.__file__, batches.__file__, checks.__file__)
"""Modules of ours that an agent finds as they are; they import nothing else of ours."""


def prepare(profile: str, say: Callable[[str], None]) -> None:
    """Make the text of the profile, and its models if they are neither shipped nor built yet."""
    entry = PROFILES[profile]
    prepare_text(entry.text, say=say)
    if entry.large.published:
        _fetch(entry, say)
    elif directory_of(profile) == cached(profile):
        with file_lock(cached(profile).with_name(f".{profile}.lock")):
            _build(profile, entry.text, say)


def _build(profile: str, text: str, say: Callable[[str], None]) -> None:
    """Build the models of a profile into the cache, unless they are there, whole, and of this text."""
    try:
        _text_of(open_models(profile), text)
    except UsageError:
        say(f"training the models of profile {profile}: once, some minutes on a GPU ...")
    except ReBenchError as error:
        say(f"the models are trained again, because of this: {error}")
    else:
        return
    if not torch.cuda.is_available():
        raise UsageError(
            f"the models of profile {profile} must be trained first, and this machine has no CUDA device for that"
        )
    build(profile, cached(profile), say)


def _fetch(entry: Profile, say: Callable[[str], None]) -> None:
    from re_bench.lm.gpt2 import PUBLISHED, fetch_gpt2  # noqa: PLC0415 - profile paper alone needs it

    for recipe in (entry.large, entry.small):
        fetch_gpt2(PUBLISHED[recipe.published], say=say)


def lay_out(profile: str, target: Path) -> None:
    """Put models, text, modules and ``profile.json`` into the workspace ``target``.

    Every call corrupts the large model anew. The corrupted model is also there as ``fixed_model.pth``, the starting
    solution.
    """
    entry, models = PROFILES[profile], open_models(profile)
    _save(corrupted(models.large), entry.dtype, target / "large_model.pth")
    shutil.copyfile(target / "large_model.pth", target / "fixed_model.pth")
    _save(models.small, entry.dtype, target / "small_correct_model.pth")
    (target / "data").mkdir(exist_ok=True)
    source = _text_of(models, entry.text).directory
    for name in ("train.bin", "tokenizer.json"):
        shutil.copyfile(source / name, target / "data" / name)
    for module in COPIED:
        shutil.copyfile(module, target / Path(module).name)
    contents = json.dumps(described(profile, entry, models), indent=2) + "\n"
    (target / "profile.json").write_text(contents, encoding="utf-8")


def _text_of(models: Models, name: str) -> PreparedText:
    """Return the text ``name`` if the models were trained on it: for another one their tokens mean nothing."""
    text = open_text(name)
    if models.text not in (None, text.manifest["files"]):
        raise ReBenchError(
            f"the models were trained on another {name} than {text.directory}; train them again: tools/build_models.py"
        )
    return text


def corrupted(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state dict with the rows of the embedding in an order that the system's randomness drew."""
    rows = len(state[EMBEDDING])
    order = secrets.SystemRandom().sample(range(rows), rows)
    return {**state, EMBEDDING: state[EMBEDDING][torch.tensor(order)]}


def described(profile: str, entry: Profile, models: Models) -> dict[str, Any]:
    """Return what ``profile.json`` tells the agent."""
    return {
        "profile": profile,
        "large": asdict(entry.large.config),
        "small": asdict(entry.small.config),
        "context": entry.context,
        "intact_loss": round(models.large_loss, 2),
        "floor": entry.floor,
        "budget": asdict(entry.budget),
        "tensors": tensors_of(entry.large.config, entry.dtype),
    }


def _save(state: dict[str, Any], dtype: str, path: Path) -> None:
    """Save plain copies in their usual order, so that nothing of where a tensor came from is in the file."""
    torch.save({name: tensor.to(getattr(torch, dtype), copy=True).contiguous() for name, tensor in state.items()}, path)
