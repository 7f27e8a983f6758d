"""The functions that run in the sandbox, beside the submission; nothing that they return is believed.

The scorer calls them by ``process.call(function, ...)``. Arguments and results are what the annotations say: numbers,
strings, paths, lists, dictionaries, dataclasses, and numpy arrays; docs/task-authors.md has the list.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

_loaded: dict[str, Any] = {}
"""What one call leaves for the next; it lives as long as the sandbox."""


def load(directory: Path) -> None:
    """Import the submission."""
    sys.path.insert(0, str(directory))
    _loaded["fit"] = importlib.import_module("solution").fit


def fit(points: list[tuple[float, float]]) -> None:
    """Have the submission fit the points."""
    _loaded["predict"] = _loaded["fit"](points)


def predict(places: list[float]) -> list[float]:
    """Return what the submission predicts at each place."""
    return [float(_loaded["predict"](x)) for x in places]
