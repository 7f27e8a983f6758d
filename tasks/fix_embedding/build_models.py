"""Training the intact models of a profile: ``python build_models.py --profile cpu [--out DIR]``.

Those of profile ``cpu`` are shipped in ``models/cpu``, those of profile ``gpu`` are built into the cache. On one H200
that it had not for itself, each profile took 200 to 260 s. The bits depend on the GPU and on versions, which
``models.json`` names, beside recipes, losses and the SHA-256 of the files.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from evaluation import mean_loss, scored_windows
from safetensors.torch import save_file
from sizes import SIZES, Recipe, Size
from stored import NAMES, RECORD, cached, shipped

from re_bench.data.cache import file_lock, new_directory
from re_bench.data.files import sha256_of
from re_bench.data.provenance import hardware, versions
from re_bench.errors import UsageError
from re_bench.lm.gpt import GPT, next_token_loss
from re_bench.lm.training import Settings, train
from re_bench.processes import cli_entry_point
from re_bench.text import PreparedText, RandomWindows, open_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHIPPED = ("cpu",)
"""Profiles whose models are part of the task's folder."""
WARMUP = 30
"""One step in so many is warm-up."""
FINAL = 0.02
"""Share of the learning rate at the end."""


def build(profile: str, directory: Path, say: Callable[[str], None]) -> None:
    """Train both models of a profile and put them into ``directory``, which appears whole or not at all.

    Hold a lock: two who build into one directory would disturb each other.

    Raises:
        UsageError: if the profile's models are not trained here, or its text is not prepared.
    """
    size = SIZES[profile]
    if size.large.published:
        raise UsageError(f"the models of profile {profile} are published ones; run: re-bench prepare fix_embedding")
    text = open_text(size.text)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(directory) as filling:
        models = {}
        for name in NAMES:
            models[name], state = trained(name, size, getattr(size, name), text, say)
            # Half precision halves what is shipped; what it costs is in the loss, which is taken of these numbers.
            save_file(state, filling / f"{name}.safetensors")
            (filling / f"{name}.safetensors").chmod(0o644)
        files = {path.name: sha256_of(path) for path in sorted(filling.iterdir())}
        record = {"profile": profile, "text": described(text), "files": files, "models": models, **circumstances()}
        (filling / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def trained(
    name: str, size: Size, recipe: Recipe, text: PreparedText, say: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train one model; return its entry of ``models.json`` and its state dict in half precision."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(recipe.seed)
    model = GPT(recipe.config).to(device)
    batches = RandomWindows(text.train, size.training_batch, recipe.config.block_size, recipe.seed)
    settings = Settings(
        recipe.steps, recipe.learning_rate, recipe.steps // WARMUP, FINAL, report_every=500, compile=device == "cuda"
    )
    flops = model.flops_per_token(recipe.config.block_size)
    outcome = train(
        model, batches, next_token_loss, settings, flops_per_token=flops, say=lambda line: say(f"{name}: {line}")
    )
    state = {key: tensor.to("cpu", torch.float16).contiguous() for key, tensor in model.state_dict().items()}
    windows = scored_windows(text.heldout, size.context, size.heldout_tokens)
    loss = mean_loss(recipe.config, state, windows, batch=size.scoring_batch, device=device)
    say(f"{name}: held-out loss {loss:.4f} after {outcome.seconds:.0f} s of training")
    figures = {"seconds": round(outcome.seconds, 1), "tokens": outcome.tokens, "heldout_loss": loss}
    return {**asdict(recipe), "settings": asdict(settings), "batch": size.training_batch, **figures}, state


def described(text: PreparedText) -> dict[str, Any]:
    """Return which text it was."""
    return {key: text.manifest[key] for key in ("name", "key", "files")}


def circumstances() -> dict[str, Any]:
    """Return when and on what the models were trained."""
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else hardware()
    return {"hardware": where, "date": dt.datetime.now(dt.UTC).date().isoformat(), "versions": versions()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Train the intact models of a profile.")
    parser.add_argument("--profile", choices=[name for name in SIZES if not SIZES[name].large.published], required=True)
    parser.add_argument("--out", metavar="DIR", type=Path, help="where to put them, if not in the usual place")
    options = parser.parse_args(arguments)
    with cli_entry_point("build_models.py"):
        out = options.out or (shipped(options.profile) if options.profile in SHIPPED else cached(options.profile))
        with file_lock(cached(options.profile).with_name(f".{options.profile}.lock")):
            build(options.profile, out.resolve(), lambda line: print(line, file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
