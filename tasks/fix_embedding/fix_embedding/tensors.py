"""The tensors of a model: which ones a submission must have, and how they get from the sandbox to the scorer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from re_bench.errors import InvalidSubmissionError
from re_bench.lm.gpt import GPT, GPTConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.sandbox.untrusted import Untrusted
    from re_bench.scoring.score import Job

_GROUP_BYTES = 1 << 29
"""Handed over at a time, unless one tensor is larger."""


def tensors_of(config: GPTConfig, dtype: str) -> dict[str, dict[str, Any]]:
    """Return the tensors of a model of this configuration by name, each with its ``shape`` and ``dtype``."""
    with torch.device("meta"):
        state = GPT(config).state_dict()
    return {name: {"shape": list(tensor.shape), "dtype": dtype} for name, tensor in state.items()}


def receive(process: Untrusted, job: Job, tensors: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Return the name of the submitted file and its tensors, of exactly the names, shapes and dtypes of ``tensors``.

    Args:
        process: the one that runs ``harness/loader.py``.
        job: the submission.
        tensors: what it must hold, as :func:`tensors_of` says it.

    Raises:
        InvalidSubmissionError: if it holds something else, or values that are not finite.
    """
    job.progress("reading the submission")
    file = process.call("read", {"directory": str(job.submission), "tensors": tensors}).value
    if file not in job.task.manifest.submission:
        raise InvalidSubmissionError("the process that reads the submission named no file of it")
    state: dict[str, Any] = {}
    for names in _groups(tensors):
        nbytes = sum(_size_of(tensors[name]) for name in names)
        data = process.call("copy", {"names": names}, outputs=[nbytes]).outputs[0]
        start = 0
        for name in names:
            state[name] = _tensor_of(name, tensors[name], data, start)
            start += _size_of(tensors[name])
    return file, state


def _groups(tensors: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the names in groups that are handed over together."""
    group: list[str] = []
    for name in tensors:
        if group and sum(_size_of(tensors[other]) for other in [*group, name]) > _GROUP_BYTES:
            yield group
            group = []
        group.append(name)
    yield group


def _size_of(tensor: dict[str, Any]) -> int:
    """Return the bytes of a tensor's values."""
    return int(math.prod(tensor["shape"]) * np.dtype(tensor["dtype"]).itemsize)


def _tensor_of(name: str, expected: dict[str, Any], data: bytes, start: int) -> Any:
    """Return the tensor whose values begin at ``start``; nobody else checked that they are finite."""
    values = np.frombuffer(data, expected["dtype"], math.prod(expected["shape"]), start)
    if not np.isfinite(values).all():
        raise InvalidSubmissionError(f"{name} has values that are not finite")
    return torch.from_numpy(values.reshape(expected["shape"]).copy())
