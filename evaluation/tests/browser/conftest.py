"""Provide the browser."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from chromium import Browser, start

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a browser without network access."""
    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium: apt-get install chromium chromium-driver")
    started = start(chromium, chromedriver)
    yield started
    started.driver.quit()
