"""The scorer of fix_embedding: raw = ln(held-out loss - floor), lower is better.

What crosses to this process are the tensors' bytes, of the sizes that it asked for; the file is read in a sandbox
(``loading/loader.py``). The model that they are put into is our own.
"""

from __future__ import annotations

import importlib
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from re_bench.errors import InvalidSubmissionError
from re_bench.scoring.language import heldout_tokens, log_above_floor
from re_bench.scoring.score import Job, Measured, main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.sandbox.untrusted import Untrusted

GROUP = 1 << 29
"""Bytes that are handed over at a time, unless one tensor is larger."""


def measure(job: Job) -> Measured:
    """Read the submission's tensors in a sandbox, and evaluate them on the held-out text."""
    with job.untrusted("loading/loader.py") as process:
        # Imports torch, while the process does.
        sizes, stored = importlib.import_module("sizes"), importlib.import_module("stored")
        evaluation = importlib.import_module("evaluation")
        size = sizes.SIZES[job.profile_name]
        windows = evaluation.scored_windows(heldout_tokens(job, size.text), size.context, size.heldout_tokens)
        file, state = handed_over(process, job, stored.tensors_of(size.large.config, size.dtype))
    started = time.monotonic()
    loss = evaluation.mean_loss(
        size.large.config,
        state,
        windows,
        batch=size.scoring_batch,
        device=job.profile.device,
        say=job.progress,
    )
    details = {
        "loss": loss,
        "floor": size.floor,
        "tokens": windows.shape[0] * size.context,
        "evaluation_seconds": round(time.monotonic() - started, 3),
        "file": file,
    }
    message = f"loss {loss:.4f} on {details['tokens']:,} held-out tokens; the score is ln(loss - {size.floor:g})"
    return Measured(log_above_floor(loss, size.floor), message, details)


def handed_over(process: Untrusted, job: Job, tensors: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the submitted file and its tensors, of exactly the names, shapes and dtypes of ``tensors``."""
    job.progress("reading the submission")
    file = process.call("read", {"directory": str(job.submission), "tensors": tensors}).value
    if file not in job.task.manifest.submission:
        raise InvalidSubmissionError("the process that reads the submission named no file of it")
    state: dict[str, Any] = {}
    for names in groups(tensors):
        nbytes = sum(size_of(tensors[name]) for name in names)
        data = process.call("copy", {"names": names}, outputs=[nbytes]).outputs[0]
        start = 0
        for name in names:
            state[name] = tensor_of(name, tensors[name], data, start)
            start += size_of(tensors[name])
    return file, state


def groups(tensors: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the names in groups that are handed over together."""
    group: list[str] = []
    for name in tensors:
        if group and sum(size_of(tensors[other]) for other in [*group, name]) > GROUP:
            yield group
            group = []
        group.append(name)
    yield group


def size_of(tensor: dict[str, Any]) -> int:
    """Return the bytes of a tensor's values."""
    return int(math.prod(tensor["shape"]) * np.dtype(tensor["dtype"]).itemsize)


def tensor_of(name: str, wanted: dict[str, Any], data: bytes, start: int) -> Any:
    """Return the tensor whose values begin at ``start``; nobody else checked that they are finite."""
    values = np.frombuffer(data, wanted["dtype"], math.prod(wanted["shape"]), start)
    if not np.isfinite(values).all():
        raise InvalidSubmissionError(f"{name} has values that are not finite")
    return importlib.import_module("torch").from_numpy(values.reshape(wanted["shape"]).copy())


if __name__ == "__main__":
    main(measure, Path(__file__).parent)
