"""Checks the memory accesses of kernels in the player too, so that a slip has a message and does not end the process.

This is a service to the author of a submission, no defence: the meter checks again.
"""

from __future__ import annotations

from typing import Any

import torch
from counting import Guard, cause_of, watched
from form import RefusedError
from triton.runtime.interpreter import InterpretedFunction, InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

_STOCK_RUN = InterpretedFunction.run


def install() -> None:
    """Let every launch of this process be checked; doing so twice changes nothing."""
    InterpretedFunction.run = _checked_run


def _checked_run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    values = [*args, *kwargs.values()]
    if any(isinstance(value, TensorDescriptor) for value in values):
        raise RefusedError(
            f"kernel {function.fn.__name__} takes a TensorDescriptor; make it in it by tl.make_tensor_descriptor"
        )
    guard = Guard(function.fn.__name__, [value for value in values if isinstance(value, torch.Tensor)])
    try:
        with watched(guard):
            _STOCK_RUN(function, *args, grid=grid, warmup=warmup, **kwargs)
    except InterpreterError as error:
        raise cause_of(error, guard) from error
