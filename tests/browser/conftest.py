"""The browser of the tests here, as those of reports have it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "common" / "tests" / "support"))

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser that reaches nothing but this machine."""
    from chromium import start  # noqa: PLC0415 - found by the line above

    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or chromedriver is None:
        pytest.skip("NOT TESTED: no chromium; type: sudo apt-get install chromium chromium-driver")
    started = start(chromium, chromedriver)
    yield started
    started.driver.quit()
