"""Runs a submission's ``fit`` in the sandbox, and the function that it returns.

It shares its process with the submission, so nothing that it answers is believed.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

loaded: dict[str, Any] = {}


def load(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Import the submission."""
    sys.path.insert(0, args["directory"])
    loaded["fit"] = importlib.import_module("solution").fit


def fit(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Have the submission fit the points."""
    loaded["predict"] = loaded["fit"]([(x, y) for x, y in args["points"]])


def predict(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> list[Any]:
    """Return what the submission predicts at each place."""
    return [loaded["predict"](x) for x in args["inputs"]]
