"""The task's modules without their names, which other tasks may have too; and the task with three of its problems."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

TASK = Path(__file__).parents[1]
MODULES = (
    "judge",
    "judge.verdicts",
    "judge.compiler",
    "judge.runner",
    "judge.toolchain",
    "judge.judging",
    "pool",
    "codecontests",
    "dataset",
    "problem_source",
    "proofs",
    "prepare",
)
PROBLEMS = ("train/badge_codes", "valid/tide_steps", "test/woven_bracelet")
MANIFEST = """
id = "example_rust"
title = "Rust"
description = "Three problems"
version = 1
direction = "higher"
aggregation = "max"
unit = "share"
submission = ["solution.py"]
"""
PROFILE = """
[profiles.{}]
description = "tiny"
device = "cpu"
time_limit_s = 60
"""


@pytest.fixture(scope="session")
def data_modules() -> dict[str, ModuleType]:
    """Import what makes and reads problems, and forget the names again."""
    path, before = sys.path.copy(), {name: sys.modules.pop(name, None) for name in MODULES}
    sys.path.insert(0, str(TASK))
    found = {name: importlib.import_module(name) for name in MODULES}
    sys.path[:] = path
    for name, module in before.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module
    return found


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def pin(task: Path) -> None:
    program = f"import sys\nsys.path.insert(0, {str(task)!r})\nimport prepare\n"
    (task / "pinning.py").write_text(f"{program}if __name__ == '__main__':\n    prepare.pin(print)\n")
    done = run(task / "pinning.py")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a Python program with a command line and some environment."""
    return run


@pytest.fixture(scope="session")
def pinned_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what makes the problems, with one problem for each split; leave it as it is."""
    task = tmp_path_factory.mktemp("tasks") / "three_problems"
    task.mkdir()
    for path in TASK.glob("*.py"):
        shutil.copy(path, task)
    shutil.copytree(TASK / "judge", task / "judge", ignore=shutil.ignore_patterns("__pycache__"))
    for name in PROBLEMS:
        shutil.copytree(TASK / "problems" / name, task / "problems" / name)
    (task / "task.toml").write_text(MANIFEST + PROFILE.format("cpu") + PROFILE.format("paper"))
    pin(task)
    return task


@pytest.fixture
def task(pinned_task: Path, tmp_path: Path) -> Path:
    """Return a copy of the task with three problems."""
    return shutil.copytree(pinned_task, tmp_path / "three_problems")
