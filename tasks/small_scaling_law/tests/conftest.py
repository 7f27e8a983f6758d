"""The task at a size for tests: a tiny text as bytes, tiny budgets, everything else as it is."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from re_bench.data.files import sha256_of
from re_bench.task.discovery import Task, open_task
from re_bench.task.workspace import lay_out
from re_bench.text.corpus import pinned_wheels
from re_bench.text.prepared import Recipe, wheel_text_entry

TASK = Path(__file__).parents[1]
sys.path.insert(0, str(TASK.parents[1] / "tests"))  # has forked_programs
TEXT = "docstrings-300"
TINY = f"""

SCALES["cpu"] = Scale(
    target_flops=4e9,
    context=8,
    batch=4,
    default=(32, 400, 3.0),
    experiments=Experiments({TEXT!r}, 1e8, 2e9, learning_rate=0.01, rate_width=32, rate_power=0.5,
                            validation_windows=64),
    n_head=4,
)
"""
PROFILE = """
[profiles.cpu]
description = "tiny"
device = "cpu"
instance = "chosen"
time_limit_s = 60
"""


@pytest.fixture(scope="session")
def fit() -> Any:
    return SimpleNamespace(**runpy.run_path(str(TASK / "tools" / "fit.py")))


@pytest.fixture(scope="session")
def sweep() -> Any:
    return SimpleNamespace(**runpy.run_path(str(TASK / "tools" / "sweep.py")))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Put a prepared text of words into a cache."""
    cache = tmp_path_factory.mktemp("cache")
    recipe, wheels = Recipe.named(TEXT), pinned_wheels()
    directory = wheel_text_entry(recipe, wheels, cache).directory
    directory.mkdir(parents=True)
    words = ["<|endoftext|>", "the", "Ġfox", "Ġjumps", "é", "Ċ"]
    draw = np.random.default_rng(0)
    for name, length in (("train.bin", 60_000), ("heldout.bin", 3000)):
        (directory / name).write_bytes(draw.integers(0, len(words), length).astype("<u2").tobytes())
    vocabulary = {word: token for token, word in enumerate(words)}
    (directory / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
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
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Return a copy of the task that has a tiny profile ``cpu`` without a truth."""
    directory = tmp_path_factory.mktemp("tasks") / "small_scaling_law"
    shutil.copytree(
        TASK, directory, ignore=shutil.ignore_patterns("tests", "anchors.toml", "__pycache__", ".*", "cpu*", "gpu*")
    )
    with (directory / "small_scaling_law" / "profiles.py").open("a") as file:
        file.write(TINY)
    manifest = (directory / "task.toml").read_text()
    start, end = manifest.index("[profiles.cpu]"), manifest.index("[profiles.paper]")
    (directory / "task.toml").write_text(manifest[:start] + PROFILE + manifest[end:])
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
