"""Harness: reads the submitted file in the sandbox and hands its tensors over as bytes.

No parser of a file format runs in the scorer. ``read({"directory": path, ...})`` reads and checks the file and returns
its name; ``copy({"names": [...]}, [], [out])`` copies these tensors, one after the other, into
``out``. Exceptions carry the reason of an invalid score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fix_embedding.harness import checks
from fix_embedding.harness.empty_model import described, empty_model
from re_bench.guest.refused import RefusedError

_loaded: dict[str, Any] = {}


def read(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> str:
    """Read and check the submission in ``args["directory"]`` and return the name of its file.

    Raises:
        RefusedError: if it is not exactly the tensors, in ``args["dtype"]``, of the model that ``args["modules"]`` and
            ``args["sizes"]`` describe as in :func:`empty_model`.
    """
    tensors = described(empty_model(args["modules"], args["sizes"]), args["dtype"])
    try:
        name, state = checks.read(Path(args["directory"]), tensors)
    except checks.RefusedError as error:
        raise RefusedError(str(error)) from None
    _loaded.update(state)
    return name


def copy(args: dict[str, Any], _inputs: list[memoryview], outputs: list[memoryview]) -> None:
    """Copy the values of the tensors ``args["names"]``, one after the other, into ``outputs[0]``."""
    start = 0
    for name in args["names"]:
        values = _loaded[name].numpy().reshape(-1)
        np.frombuffer(outputs[0], values.dtype, values.size, start)[:] = values
        start += values.nbytes
