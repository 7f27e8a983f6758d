"""Functions that run in the sandbox together with the submission; the scorer does not trust their results.

The scorer calls them with ``process.call(function, ...)``. Results are checked against the functions' annotations,
which can be numbers, strings, paths, lists, dictionaries, dataclasses and numpy arrays (full list:
docs/task-authors.md).
"""

import importlib
import sys
from pathlib import Path
from typing import Any

_loaded: dict[str, Any] = {}
"""Values kept between calls, as long as the sandboxed process runs."""


def load(directory: Path) -> None:
    """Import the submission."""
    sys.path.insert(0, str(directory))
    _loaded["fit"] = importlib.import_module("solution").fit


def fit(points: list[tuple[float, float]]) -> None:
    """Call the submission's ``fit``."""
    _loaded["predict"] = _loaded["fit"](points)


def predict(places: list[float]) -> list[float]:
    """Return the submission's prediction at each place."""
    return [float(_loaded["predict"](x)) for x in places]
