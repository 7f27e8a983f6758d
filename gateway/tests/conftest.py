"""Fixtures of the gateway's tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent / "servers"))

from re_bench.sandbox import open_backend

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend


@pytest.fixture(scope="session")
def backend() -> Backend:
    """The default sandbox of this machine."""
    return open_backend("bubblewrap")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module's gateway logs its calls."""
    return tmp_path_factory.mktemp("gateway") / "calls.jsonl"
