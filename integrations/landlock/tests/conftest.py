"""Fixtures of the tests of sandboxes that need no namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def harness(tmp_path: Path) -> Callable[[str], Path]:
    """Return what writes a harness with the given source and returns its path."""

    def write(source: str) -> Path:
        path = tmp_path / "harness.py"
        path.write_text(source)
        return path

    return write
