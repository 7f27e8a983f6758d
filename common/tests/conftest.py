"""Fixtures of the core's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from re_bench.isolation.backend import Backend, open_backend

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
