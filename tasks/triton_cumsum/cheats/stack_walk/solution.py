"""Cheat: search the stack frames and all live objects for a tensor or array that may be the expected answer.

Refused because no process that runs a submission has the answer: the search finds nothing, or a wrong array.
"""

import gc
import sys

import numpy as np
import torch


def candidates():
    frame = sys._getframe(2)
    while frame is not None:
        yield from frame.f_locals.values()
        frame = frame.f_back
    yield from gc.get_objects()


def prefix_sum(x):
    for value in candidates():
        if type(value) is np.ndarray and value.dtype == np.int32 and value.shape == x.shape:
            if not np.array_equal(value, x.cpu().numpy()):
                return torch.from_numpy(value.copy())
        if type(value) is torch.Tensor and value.dtype == torch.int32 and value.shape == x.shape and value is not x:
            return value.clone()
    raise LookupError("no answer was found")
