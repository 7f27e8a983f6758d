"""Trains the intact models of a profile.

The bits depend on the GPU and on versions, which ``models.json`` names, beside recipes, losses and the SHA-256 of the
files.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file

from fix_embedding.grading import mean_loss, scored_windows
from fix_embedding.models import NAMES
from fix_embedding.profiles import PROFILES, Profile, Recipe
from fix_embedding.sandboxed import evaluator
from re_bench.data.provenance import hardware, versions
from re_bench.lm.gpt import GPT, next_token_loss
from re_bench.lm.training import Settings, train
from re_bench.text import RandomWindows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.text import PreparedText

WARMUP = 30
"""One step in so many is warm-up."""
FINAL = 0.02
"""Share of the learning rate at the end."""


def build(profile: str, text: PreparedText, directory: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Train both models of a profile on ``text`` into ``directory``; return ``models.json``, without checksums."""
    settings = PROFILES[profile]
    models = {}
    for name in NAMES:
        models[name], state = trained(name, settings, getattr(settings, name), text, say)
        path = directory / f"{name}.safetensors"
        # Half precision halves what is shipped; what it costs is in the loss, which is taken of these numbers.
        save_file(state, path)
        path.chmod(0o644)  # safetensors lets the owner alone read it
    return {
        "profile": profile,
        "text": {key: text.manifest[key] for key in ("name", "key", "files")},
        "models": models,
        "hardware": torch.cuda.get_device_name() if torch.cuda.is_available() else hardware(),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "versions": versions(),
    }


def trained(
    name: str, entry: Profile, recipe: Recipe, text: PreparedText, say: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train one model; return its entry of ``models.json`` and its state dict in half precision."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(recipe.seed)
    model = GPT(recipe.config).to(device)
    batches = RandomWindows(text.train, entry.training_batch, recipe.config.block_size, recipe.seed)
    settings = Settings(
        recipe.steps, recipe.learning_rate, recipe.steps // WARMUP, FINAL, report_every=500, compile=device == "cuda"
    )
    flops = model.flops_per_token(recipe.config.block_size)
    outcome = train(
        model, batches, next_token_loss, settings, flops_per_token=flops, say=lambda line: say(f"{name}: {line}")
    )
    state = {key: tensor.to("cpu", torch.float16).contiguous() for key, tensor in model.state_dict().items()}
    windows = scored_windows(text.heldout, entry.context, entry.heldout_tokens)
    evaluator.put_into(model, state, device)
    loss = mean_loss(lambda part: evaluator.losses(model, part), windows, entry)
    say(f"{name}: held-out loss {loss:.4f} after {outcome.seconds:.0f} s of training")
    figures: dict[str, Any] = {"settings": asdict(settings), "batch": entry.training_batch}
    figures |= {"seconds": round(outcome.seconds, 1), "tokens": outcome.tokens, "heldout_loss": loss}
    own = {key: value for key, value in asdict(recipe).items() if key != "sizes"}
    return {"config": asdict(recipe.config), **own, **figures}, state
