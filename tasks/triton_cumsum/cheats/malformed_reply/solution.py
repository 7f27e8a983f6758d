"""Cheat: compute the right answer with NumPy, but reply in an unexpected form, so that the scorer fails.

Refused because a malformed reply makes the submission invalid, and is not an internal error.
"""

import functools
import sys

import numpy as np

harness = sys.modules["triton_cumsum.sandboxed.cpu"]


def answer(x):
    odd = np.zeros(x.shape, dtype=bool)
    odd[1:] = np.cumsum(x[:-1] > 0) % 2 == 1
    return np.cumsum(np.where(odd, x, 0), dtype=np.int32)


@functools.wraps(harness.record)
def record(x):
    return answer(x), [None, {"steps": 1e300}]


harness.record = record


def prefix_sum(x):
    raise RuntimeError("the harness asks for this, so it was not replaced")
