"""Reads the submitted file, so that no parser of a file format runs in the scorer."""

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from re_bench.errors import InvalidSubmissionError

FileName = Literal["fixed_model.safetensors", "fixed_model.pth"]

_tensors: dict[str, Any] = {}


def read_submission(directory: Path, sizes: dict[str, int], dtype: str) -> FileName:
    """Read the submission, which must be exactly the tensors of a model of these sizes; return the name of its file."""
    from fix_embedding.sandboxed import checks, evaluator  # noqa: PLC0415 - import torch, which the scorer does without

    tensors = checks.described(evaluator.empty_model(sizes), dtype)
    try:
        name, state = checks.read(directory, tensors)
    except checks.RefusedError as error:
        raise InvalidSubmissionError(str(error)) from None
    _tensors.update(state)
    return cast("FileName", name)


def tensor(name: str, size: int) -> Annotated[NDArray[np.uint8], "size"]:
    """Return the bytes of a tensor, ``size`` in all."""
    del size
    array: NDArray[np.uint8] = _tensors[name].numpy().reshape(-1).view(np.uint8)
    return array
