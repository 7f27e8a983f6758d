"""Harness: runs a submission's ``prefix_sum``, in the process that nobody trusts.

``load({"directory": path})`` imports ``solution.py``; ``run({"length": n, "record": bool}, [x], [y])`` calls
``prefix_sum`` on the int32 input ``x``, checks the result's form, copies it to ``y`` and returns ``{}``, or
``{"trace": text}``, the trace as JSON, when it was asked to record. Exceptions carry the reason of an invalid score.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import fast_interpreter
import form
import guard
import numpy as np
import torch
from form import RefusedError
from record import Recorder

_SOLUTION = "solution"
_loaded: dict[str, Any] = {}


def load(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Import ``solution.py`` of ``args["directory"]`` and keep its ``prefix_sum``.

    Raises:
        RefusedError: if the file, or the function in it, is missing or fails to import.
    """
    fast_interpreter.install()
    guard.install()
    _loaded["prefix_sum"] = form.load(Path(args["directory"]), _SOLUTION)


def run(args: dict[str, Any], inputs: list[memoryview], outputs: list[memoryview]) -> dict[str, Any]:
    """Call ``prefix_sum`` once on ``args["length"]`` int32 values and copy what it returns to ``outputs[0]``.

    Raises:
        RefusedError: if it raises, changes its input, or returns something else than a new int32 tensor.
    """
    given = np.frombuffer(inputs[0], dtype=np.int32, count=args["length"])
    x = torch.from_numpy(given.copy())
    result, trace = _call(_loaded["prefix_sum"], x, record=bool(args.get("record")))
    if not np.array_equal(x.numpy(), given):
        raise RefusedError("prefix_sum changed its input x; leave it as it is")
    np.frombuffer(outputs[0], dtype=np.int32)[:] = result.numpy()
    return trace


def _call(function: Any, x: Any, *, record: bool) -> tuple[Any, dict[str, Any]]:
    recorder = Recorder(x) if record else None
    with recorder or nullcontext():
        result = form.call(function, x)
    # The form comes first: its messages say more than that an odd object is no result of a step.
    form.check(x, result)
    return result, {"trace": json.dumps(recorder.trace(result))} if recorder else {}
