"""Harness: runs a submission's ``prefix_sum``, in the process that nobody trusts.

``load({"directory": path})`` imports ``solution.py``; ``run({"length": n, "record": bool}, [x], [y])`` calls
``prefix_sum`` on the int32 input ``x``, checks the result's form, copies it to ``y`` and returns ``{}``, or
``{"trace": text}``, the trace as JSON, when it was asked to record. Exceptions carry the reason of an invalid score.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import importlib
import json
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import fast_interpreter
import guard
import numpy as np
import torch
from codec import RefusedError
from record import Recorder

_SOLUTION = "solution"
_loaded: dict[str, Any] = {}


def load(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Import ``solution.py`` of ``args["directory"]`` and keep its ``prefix_sum``.

    Raises:
        RefusedError: if the file, or the function in it, is missing or fails to import.
    """
    directory = Path(args["directory"])
    if not (directory / f"{_SOLUTION}.py").is_file():
        msg = "solution.py is missing; it must define prefix_sum(x)"
        raise RefusedError(msg)
    fast_interpreter.install()
    guard.install()
    # Only now, after all imports of ours, may names come from the submission.
    sys.path.insert(0, str(directory))
    try:
        module = importlib.import_module(_SOLUTION)
    except Exception as error:
        msg = f"solution.py cannot be imported: {_place(error)}"
        raise RefusedError(msg) from error
    if not callable(getattr(module, "prefix_sum", None)):
        msg = "solution.py defines no function prefix_sum(x)"
        raise RefusedError(msg)
    _loaded["prefix_sum"] = module.prefix_sum


def run(args: dict[str, Any], inputs: list[memoryview], outputs: list[memoryview]) -> dict[str, Any]:
    """Call ``prefix_sum`` once on ``args["length"]`` int32 values and copy what it returns to ``outputs[0]``.

    Raises:
        RefusedError: if it raises, changes its input, or returns something else than a new int32 tensor.
    """
    given = np.frombuffer(inputs[0], dtype=np.int32, count=args["length"])
    x = torch.from_numpy(given.copy())
    result, trace = _call(_loaded["prefix_sum"], x, record=bool(args.get("record")))
    if not np.array_equal(x.numpy(), given):
        msg = "prefix_sum changed its input x; leave it as it is"
        raise RefusedError(msg)
    np.frombuffer(outputs[0], dtype=np.int32)[:] = result.numpy()
    return trace


def check_result(x: Any, result: Any) -> None:
    """Check that ``result`` is a plain new tensor like ``x``: type, dtype, shape, device, memory of its own.

    Raises:
        RefusedError: naming what differs.
    """
    if type(result) is not torch.Tensor:
        msg = f"prefix_sum returned a {type(result).__name__}, not exactly a torch.Tensor"
        raise RefusedError(msg)
    for name in ("dtype", "device", "layout", "shape"):
        got, expected = getattr(result, name), getattr(x, name)
        if got != expected:
            msg = f"prefix_sum returned a tensor of {name} {got}; expected {expected}"
            raise RefusedError(msg)
    storage = result.untyped_storage()
    if storage.data_ptr() == x.untyped_storage().data_ptr():
        msg = "prefix_sum returned memory of its input x; return a new tensor"
        raise RefusedError(msg)
    if storage.nbytes() < 4 * x.numel():
        msg = f"prefix_sum returned a tensor on {storage.nbytes()} bytes of memory; {4 * x.numel()} are needed"
        raise RefusedError(msg)


def _call(function: Any, x: Any, *, record: bool) -> tuple[Any, dict[str, Any]]:
    recorder = Recorder(x) if record else None
    try:
        with recorder or nullcontext():
            result = function(x)
    except RefusedError:
        raise
    except Exception as error:
        msg = f"prefix_sum raised {_place(error)}"
        raise RefusedError(msg) from error
    # The form comes first: its messages say more than that an odd object is no result of a step.
    check_result(x, result)
    return result, {"trace": json.dumps(recorder.trace(result))} if recorder else {}


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith("solution.py")]
    line = f" (solution.py, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{line}"
