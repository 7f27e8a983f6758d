"""Fixtures of the gateway's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from re_bench.sandbox import open_backend

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend


@pytest.fixture(scope="session")
def backend() -> Backend:
    """The default sandbox of this machine."""
    return open_backend("bubblewrap")
