"""Try the reference at GPT-2's vocabulary: ``python tools/measure_vocabulary.py [--steps N]``.

A model of 12 layers and width 768 is trained on the text ``sources-50257``, its rows are put into another order as for
a workspace, and ``reference/fix.py`` repairs it. Prints one JSON object. It takes some minutes on a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file

from fix_embedding.build import trained
from fix_embedding.grading import mean_loss, scored_windows
from fix_embedding.harness import evaluator
from fix_embedding.prepare import COPIED, EMBEDDING, corrupted
from fix_embedding.profiles import PROFILES, Budget, Profile, Recipe, Sizes
from re_bench.lm.gpt import GPT
from re_bench.processes import cli_entry_point, print_progress
from re_bench.text.prepare import prepare as prepare_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.text import PreparedText

REFERENCE = Path(__file__).parents[1] / "reference"
SIZES = Sizes(50_257, 256, 12, 12, 768)
STEPS = 1_500
RARE = 5
"""Occurrences up to which a token counts as rare."""


def profile_of(sizes: Sizes, steps: int) -> Profile:
    """Return profile ``gpu`` with a text and a large model of another vocabulary."""
    large = Recipe(sizes, steps=steps, learning_rate=6e-4, seed=1)
    return replace(PROFILES["gpu"], text=f"sources-{sizes.vocab_size}", large=large, budget=Budget(3_000, 64))


def lay_out(profile: Profile, state: dict[str, Any], text: PreparedText, target: Path) -> None:
    """Put what the reference reads into the workspace ``target``, with the rows in a new order."""
    (target / "data").mkdir(parents=True)
    for path in (*map(Path, COPIED), *REFERENCE.glob("*.py")):
        shutil.copyfile(path, target / path.name)
    shutil.copyfile(text.directory / "train.bin", target / "data" / "train.bin")
    torch.save(corrupted({name: tensor.float() for name, tensor in state.items()}), target / "large_model.pth")
    told = {"large": asdict(profile.large.config), "context": profile.context, "budget": asdict(profile.budget)}
    (target / "profile.json").write_text(json.dumps(told), encoding="utf-8")


def repair(workspace: Path) -> dict[str, Any]:
    """Run the reference; return its seconds and the most main memory it had.

    Raises:
        CalledProcessError: if it fails.
    """
    began, command = time.perf_counter(), [sys.executable, "fix.py"]
    with subprocess.Popen(command, cwd=workspace) as process:
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"seconds": round(time.perf_counter() - began, 1), "main_memory_gib": round(usage.ru_maxrss / 1024**2, 2)}


def compared(profile: Profile, intact: dict[str, Any], repaired: dict[str, Any], text: PreparedText) -> dict[str, Any]:
    """Return the held-out loss of the repaired model, and which rows are right by how often their tokens occur."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = GPT(profile.large.config).to(device)
    evaluator.put_into(model, repaired, device)
    windows = scored_windows(text.heldout, profile.context, profile.heldout_tokens)
    right = (repaired[EMBEDDING] == intact[EMBEDDING].float()).all(1).numpy()
    counts, heldout = (np.bincount(tokens, minlength=len(right)) for tokens in (text.train, text.heldout))
    return {
        "loss": mean_loss(lambda part: evaluator.losses(model, part, device), windows, profile.scoring_batch),
        "rows_right": right.mean(),
        "training_text_right": counts[right].sum() / counts.sum(),
        "heldout_text_right": heldout[right].sum() / heldout.sum(),
        "rows_by_occurrences": {
            f"{low} to {high - 1}": {
                "rows": int((chosen := (counts >= low) & (counts < high)).sum()),
                "right": int(right[chosen].sum()),
                "heldout_share": heldout[chosen].sum() / heldout.sum(),
            }
            for low, high in ((0, 1), (1, RARE + 1), (RARE + 1, 20), (20, 100), (100, 1 << 62))
        },
    }


def measure(profile: Profile, workspace: Path) -> dict[str, Any]:
    """Train, corrupt, repair and compare."""
    text = prepare_text(profile.text, say=print_progress).text
    record, state = trained("large", profile, profile.large, text, print_progress)
    lay_out(profile, state, text, workspace)
    effort = repair(workspace)
    repaired = load_file(workspace / "fixed_model.safetensors")
    return {"model": record, **effort, **compared(profile, state, repaired, text)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description="Try the reference at GPT-2's vocabulary.")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training the model")
    options = parser.parse_args(arguments)
    with cli_entry_point("measure_vocabulary.py"), tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure(profile_of(SIZES, options.steps), Path(directory) / "workspace")))


if __name__ == "__main__":
    main()
