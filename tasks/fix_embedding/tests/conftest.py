"""The task at a size for tests: a tiny text, tiny models, everything else as it is."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fix_embedding.prepare import tensors_of
from safetensors.torch import save_file

from re_bench.data.files import sha256_of
from re_bench.lm.gpt import GPT, GPTConfig
from re_bench.task.discovery import Task, open_task
from re_bench.task.workspace import lay_out
from re_bench.text import open_text
from re_bench.text.corpus import pinned_wheels
from re_bench.text.prepared import Recipe, wheel_text_entry

TASK = Path(__file__).parents[1]
TEXT = "docstrings-300"
LARGE, SMALL = GPTConfig(300, 16, 2, 2, 16), GPTConfig(300, 16, 1, 2, 8)
TINY = f"""

PROFILES = {{
    "cpu": Profile(
        text={TEXT!r},
        large=Recipe(Sizes(300, 16, 2, 2, 16), steps=3, learning_rate=1e-3),
        small=Recipe(Sizes(300, 16, 1, 2, 8), steps=3, learning_rate=1e-3),
        training_batch=8,
        dtype="float32",
        heldout_tokens=1024,
        scoring_batch=32,
        floor=0.5,
        budget=Budget(steps=8, batch=8),
    )
}}
"""


@pytest.fixture(scope="session")
def tensors() -> dict[str, Any]:
    return tensors_of(LARGE, "float32")


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put a prepared text of random tokens into a cache."""
    cache = tmp_path_factory.mktemp("cache")
    recipe, wheels = Recipe.named(TEXT), pinned_wheels()
    directory = wheel_text_entry(recipe, wheels, cache).directory
    directory.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for name, length in (("train.bin", 20_000), ("heldout.bin", 3000)):
        (directory / name).write_bytes(draw.integers(0, 300, length).astype("<u2").tobytes())
    (directory / "tokenizer.json").write_text("{}")
    files = {path.name: sha256_of(path) for path in directory.iterdir()}
    manifest = {"name": TEXT, "key": recipe.key(wheels), "files": files, "made_with": "nothing"}
    manifest["wheels"] = {wheel.file: wheel.sha256 for wheel in wheels}
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return cache


@pytest.fixture(autouse=True)
def in_tiny_cache(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test, and nothing after it, find the tiny cache."""
    monkeypatch.setenv("RE_BENCH_CACHE", str(tiny_cache))


@pytest.fixture(autouse=True)
def light_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the programs that a test starts train without torch's compiler, which they would only import."""
    monkeypatch.setenv("PYTHONPATH", str(TASK.parents[1] / "tests" / "light_torch"), prepend=os.pathsep)


@pytest.fixture(scope="session")
def intact() -> dict[str, dict[str, Any]]:
    torch.manual_seed(0)
    return {"large": GPT(LARGE).state_dict(), "small": GPT(SMALL).state_dict()}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, tiny_cache: Path, intact: dict[str, Any]) -> Task:
    """Return a copy of the task with another table of profiles and models that fit it."""
    directory = tmp_path_factory.mktemp("tasks") / "fix_embedding"
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("tests", "models", "__pycache__", ".*"))
    with (directory / "fix_embedding" / "profiles.py").open("a") as file:
        file.write(TINY)
    models = directory / "fix_embedding" / "models" / "cpu"
    models.mkdir(parents=True)
    files = open_text(TEXT, cache=tiny_cache).manifest["files"]
    record: dict[str, Any] = {"files": {}, "models": {"large": {"heldout_loss": 5.0}}, "text": {"files": files}}
    for name, state in intact.items():
        path = models / f"{name}.safetensors"
        save_file({key: tensor.half() for key, tensor in state.items()}, path)
        record["files"][path.name] = sha256_of(path)
    (models / "models.json").write_text(json.dumps(record))
    return open_task(directory)


@pytest.fixture(scope="session")
def laid_out(tiny: Task, tiny_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the workspace that an agent finds; leave it as it is."""
    target = tmp_path_factory.mktemp("laid_out") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RE_BENCH_CACHE", str(tiny_cache))
        lay_out(tiny, target, profile="cpu")
    return target


@pytest.fixture
def workspace(laid_out: Path, tmp_path: Path) -> Path:
    """Return a copy of the workspace that an agent finds."""
    return shutil.copytree(laid_out, tmp_path / "workspace")
