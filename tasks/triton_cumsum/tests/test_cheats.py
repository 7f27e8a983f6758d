"""What all cheats have in common; ``re-bench validate`` scores them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

CHEATS = sorted((Path(__file__).parents[1] / "cheats").glob("*/solution.py"))


@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.parent.name)
def test_the_modules_that_a_cheat_attacks_exist(path: Path) -> None:
    for name in re.findall(r"triton_cumsum(?:\.\w+)+", path.read_text()):
        assert importlib.util.find_spec(name), name


@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.parent.name)
def test_cheats_say_what_they_try_and_what_stops_them(path: Path) -> None:
    text = path.read_text()
    assert text.startswith('"""')
    assert re.search("[Ss]topped|no better", text)
