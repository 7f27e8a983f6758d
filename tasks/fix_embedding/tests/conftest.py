"""The task at a size for tests: a tiny text, tiny models, everything else as it is."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from fix_embedding.recurrent import RecurrentModel
from fix_embedding.sandboxed import checks, empty_model
from re_bench.data.files import sha256_of
from re_bench.lm.gpt import GPT, GPTConfig
from re_bench.task.discovery import TaskFolder, open_task
from re_bench.testing import TINY_TEXT, write_tiny_text
from re_bench.text import open_text

TASK = Path(__file__).parents[1]
LARGE = GPTConfig(300, 16, 2, 2, 16)
TINY = f"""

PROFILES = {{
    "cpu": Profile(
        text={TINY_TEXT!r},
        large=Recipe(Sizes(300, 16, 2, 2, 16), steps=3, learning_rate=1e-3),
        small=Recipe(RecurrentSizes(300, 8, 12), steps=3, learning_rate=1e-3),
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
    return checks.described(empty_model(asdict(LARGE)), "float32")


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_text(tmp_path_factory.mktemp("cache"), [f"word{number}" for number in range(300)])


@pytest.fixture(autouse=True)
def in_tiny_cache(tiny_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test, and nothing after it, find the tiny cache."""
    monkeypatch.setenv("RE_BENCH_CACHE", str(tiny_cache))


@pytest.fixture(scope="session")
def intact() -> dict[str, dict[str, Any]]:
    torch.manual_seed(0)
    return {"large": GPT(LARGE).state_dict(), "small": RecurrentModel(300, 8, 12).state_dict()}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, tiny_cache: Path, intact: dict[str, Any]) -> TaskFolder:
    """Return a copy of the task with another table of profiles and models that fit it."""
    directory = tmp_path_factory.mktemp("tasks") / "fix_embedding"
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("tests", "models", "__pycache__", ".*"))
    with (directory / "fix_embedding" / "profiles.py").open("a") as file:
        file.write(TINY)
    models = directory / "fix_embedding" / "models" / "cpu"
    models.mkdir(parents=True)
    files = open_text(TINY_TEXT, cache=tiny_cache).manifest["files"]
    record: dict[str, Any] = {"files": {}, "models": {"large": {"heldout_loss": 5.0}}, "text": {"files": files}}
    for name, state in intact.items():
        path = models / f"{name}.safetensors"
        save_file({key: tensor.half() for key, tensor in state.items()}, path)
        record["files"][path.name] = sha256_of(path)
    (models / "models.json").write_text(json.dumps(record))
    return open_task(directory)
