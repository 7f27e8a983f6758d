"""The tensors of a model: which ones a submission must have, and how they get from one sandbox to the other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.errors import InvalidSubmissionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from re_bench.sandbox.untrusted import Untrusted
    from re_bench.scoring.score import Job

_GROUP_BYTES = 1 << 29
"""Handed over at a time, unless one tensor is larger."""


def described(shapes: Mapping[str, list[int]], dtype: str) -> dict[str, dict[str, Any]]:
    """Return what the loader and an agent are told of a model's tensors: by name, its ``shape`` and ``dtype``."""
    return {name: {"shape": list(shape), "dtype": dtype} for name, shape in shapes.items()}


def hand_over(job: Job, loader: Untrusted, evaluator: Untrusted, shapes: Mapping[str, list[int]], dtype: str) -> str:
    """Move the submitted tensors from the process that reads them to the one that evaluates; return their file's name.

    Args:
        job: the submission.
        loader: runs ``harness/loader.py``.
        evaluator: runs ``harness/evaluator.py``, and has built the model.
        shapes: of the model's tensors, by name.
        dtype: of them all.

    Raises:
        InvalidSubmissionError: if the submission is anything but these tensors, with finite values.
    """
    job.progress("reading the submission")
    read = {"directory": str(job.submission), "tensors": described(shapes, dtype)}
    file = loader.call("read", read).value
    if file not in job.task.manifest.submission:
        raise InvalidSubmissionError("the process that reads the submission named no file of it")
    sizes = {name: math.prod(shape) * np.dtype(dtype).itemsize for name, shape in shapes.items()}
    for names in _groups(sizes):
        values = loader.call("copy", {"names": names}, outputs=[sum(sizes[name] for name in names)]).outputs[0]
        evaluator.call("load", {"names": names, "dtype": dtype}, inputs=[values])
    return str(file)


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the names in groups that are handed over together."""
    group: list[str] = []
    for name in sizes:
        if group and sum(sizes[other] for other in [*group, name]) > _GROUP_BYTES:
            yield group
            group = []
        group.append(name)
    yield group
