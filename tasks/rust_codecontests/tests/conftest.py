"""The task with four of its problems, and programs in processes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TASK = Path(__file__).parents[1]
PACKAGE = TASK / TASK.name
PROBLEMS = ("train/badge_codes", "valid/tide_steps", "test/beacon_pairs", "test2/turning_tray")  # soon made
MANIFEST = """
id = "example_rust"
title = "Rust"
description = "Four problems"
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


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Keep every core that we have busy with three programs that do not descend from this process."""
    script = "for n in $(seq $0); do timeout 600 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!; done"
    command = ["setsid", "sh", "-c", script, str(3 * len(os.sched_getaffinity(0)))]
    group = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    yield
    for process in group:
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGTERM)


@pytest.fixture
def one_core() -> Iterator[None]:
    """Have this process, and what it starts, use one core: other tests may have those that ``busy_machine`` spares."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of what judges of scorings compile, so that their harness is compiled once for all."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs Python with a command line and some environment."""
    return run


@pytest.fixture(scope="session")
def pinned_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package and its tools, with one problem for each split; leave it as it is."""
    task = tmp_path_factory.mktemp("tasks") / TASK.name
    without_data = shutil.ignore_patterns("__pycache__", "problems")
    shutil.copytree(PACKAGE, task / TASK.name, ignore=without_data)
    shutil.copytree(TASK / "tools", task / "tools", ignore=without_data)
    shutil.copy(TASK / "score.py", task)
    for name in PROBLEMS:
        shutil.copytree(PACKAGE / "problems" / name, task / TASK.name / "problems" / name)
    (task / "task.toml").write_text(MANIFEST + "".join(map(PROFILE.format, ("cpu", "cpu-test2", "paper"))))
    done = run("-c", "from rust_codecontests import workspace\nworkspace.pin(print)", PYTHONPATH=str(task))
    assert done.returncode == 0, done.stderr
    return task


@pytest.fixture
def task(pinned_task: Path, tmp_path: Path) -> Path:
    """Return a copy of the task with four problems."""
    return shutil.copytree(pinned_task, tmp_path / "tasks" / TASK.name)
