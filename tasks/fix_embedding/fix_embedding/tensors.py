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


def read(job: Job, loader: Untrusted, build: Mapping[str, Any], dtype: str) -> str:
    """Have the process that runs ``harness/loader.py`` read the submission; return the name of its file.

    Args:
        job: the submission.
        loader: the process.
        build: ``modules`` and ``sizes`` of the model whose tensors they must be.
        dtype: of them all.

    Raises:
        InvalidSubmissionError: if the submission is anything but these tensors, with finite values.
    """
    job.progress("reading the submission")
    file = loader.call("read", {**build, "directory": str(job.submission), "dtype": dtype}).value
    if file not in job.task.manifest.submission:
        raise InvalidSubmissionError("the process that reads the submission named no file of it")
    return str(file)


def hand_over(loader: Untrusted, evaluator: Untrusted, shapes: Mapping[str, list[int]], dtype: str) -> None:
    """Move the tensors of ``shapes`` from the process that has read them to the one that evaluates.

    Raises:
        InvalidSubmissionError: if a value is not finite, or the reading process ends.
    """
    sizes = {name: math.prod(shape) * np.dtype(dtype).itemsize for name, shape in shapes.items()}
    for names in _groups(sizes):
        values = loader.call("copy", {"names": names}, outputs=[sum(sizes[name] for name in names)]).outputs[0]
        evaluator.call("load", {"names": names, "dtype": dtype}, inputs=[values])


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the names in groups that are handed over together."""
    group: list[str] = []
    for name in sizes:
        if group and sum(sizes[other] for other in [*group, name]) > _GROUP_BYTES:
            yield group
            group = []
        group.append(name)
    yield group
