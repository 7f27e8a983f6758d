"""Fixtures of the core's tests."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from task_fixtures import change, made_up

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["change", "made_up"]


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
