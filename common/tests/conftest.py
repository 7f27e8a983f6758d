"""Fixtures of the core's tests."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from re_bench.sandbox import open_backend
from re_bench.task.discovery import Task, open_task

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import forked_commands

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture(scope="session")
def backend() -> Backend:
    """The default sandbox of this machine; tests about isolation do not run without one."""
    return open_backend("bubblewrap")


@pytest.fixture
def harness(tmp_path: Path) -> Callable[[str], Path]:
    """Return what writes a harness with the given source and returns its path."""

    def write(source: str) -> Path:
        directory = tmp_path / "harness_directory"
        directory.mkdir(exist_ok=True)
        path = directory / "harness.py"
        path.write_text(source)
        return path

    return write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a copy of the example's manifest, which a test may change."""
    path = tmp_path / "task.toml"
    shutil.copyfile(Path(__file__).parent / "example_task.toml", path)
    return path


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Return a copy of the task in ``made_up_task``, which a test may change, with an empty cache of prepared data."""
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    shutil.copytree(Path(__file__).parent / "made_up_task", tmp_path / "made_up")
    return open_task(tmp_path / "made_up")


@pytest.fixture(scope="session")
def change() -> Callable[[Task, str, str, str], Task]:
    """Return what puts a new text in the place of an old one in a file of a task, and returns the task."""

    def changed(task: Task, file: str, old: str, new: str) -> Task:
        path = task.directory / file
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        return open_task(task.directory)

    return changed


@pytest.fixture(scope="session")
def re_bench() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs the command ``re-bench`` with the given arguments, in the directory ``cwd``."""
    return forked_commands.re_bench
