"""Harness of profile ``cpu``: runs a submission's ``prefix_sum`` in Triton's interpreter and records its steps.

``load({"directory": path})`` imports ``solution.py``; ``run({"length": n, "record": bool}, [x], [y])`` calls
``prefix_sum`` on the int32 input ``x``, checks the result's form, copies it to ``y`` and returns ``{}``, or
``{"trace": text}``, the trace as JSON, when it was asked to record. Exceptions carry the reason of an invalid score.
Nothing that this process answers is believed: it shares its memory with the submission.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from re_bench.guest.refused import RefusedError
from triton.runtime.interpreter import InterpretedFunction, InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_cumsum.harness import fast_interpreter, submission
from triton_cumsum.harness.memory_counter import BoundsChecker, cause_of, intercepted
from triton_cumsum.harness.recorder import Recorder

_SOLUTION = "solution"
_STOCK_RUN = InterpretedFunction.run
_loaded: dict[str, Any] = {}


def load(args: dict[str, Any], _inputs: list[memoryview], _outputs: list[memoryview]) -> None:
    """Import ``solution.py`` of ``args["directory"]`` and keep its ``prefix_sum``.

    Raises:
        RefusedError: if the file, or the function in it, is missing or fails to import.
    """
    fast_interpreter.install()
    InterpretedFunction.run = _run_checked
    _loaded["prefix_sum"] = submission.load(Path(args["directory"]), _SOLUTION)


def run(args: dict[str, Any], inputs: list[memoryview], outputs: list[memoryview]) -> dict[str, Any]:
    """Call ``prefix_sum`` once on ``args["length"]`` int32 values and copy what it returns to ``outputs[0]``.

    Raises:
        RefusedError: if it raises, changes its input, or returns something else than a new int32 tensor.
    """
    values = np.frombuffer(inputs[0], dtype=np.int32, count=args["length"])
    x = torch.from_numpy(values.copy())
    result, trace = _call(_loaded["prefix_sum"], x, record=bool(args.get("record")))
    if not np.array_equal(x.numpy(), values):
        raise RefusedError("prefix_sum changed its input x; leave it as it is")
    np.frombuffer(outputs[0], dtype=np.int32)[:] = result.numpy()
    return trace


def _call(function: Any, x: Any, *, record: bool) -> tuple[Any, dict[str, Any]]:
    recorder = Recorder(x) if record else None
    with recorder or nullcontext():
        result = submission.call(function, x)
    # The form comes first: its messages say more than that an odd object is no result of a step.
    submission.check_result(x, result)
    return result, {"trace": json.dumps(recorder.trace(result))} if recorder else {}


def _run_checked(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    """Launch a kernel with its memory accesses checked, so that a slip has a message and does not end the process.

    This is a service to the author of a submission, no defence: the meter checks again.
    """
    values = [*args, *kwargs.values()]
    if any(isinstance(value, TensorDescriptor) for value in values):
        raise RefusedError(
            f"kernel {function.fn.__name__} takes a TensorDescriptor; make it in it by tl.make_tensor_descriptor"
        )
    checker = BoundsChecker(function.fn.__name__, [value for value in values if isinstance(value, torch.Tensor)])
    try:
        with intercepted(checker):
            _STOCK_RUN(function, *args, grid=grid, warmup=warmup, **kwargs)
    except InterpreterError as error:
        raise cause_of(error, checker) from error
