"""Fixtures of the core's tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from re_bench.isolation.backend import Backend, open_backend

if TYPE_CHECKING:
    from collections.abc import Callable


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
