"""Cheat: replace the harness in its own process; answer right by NumPy, with a recording of one cheap operator.

Stopped because the recording is replayed elsewhere, on other values, and must compute the right answer there.
"""

import functools
import json
import sys

import numpy as np

TRACE = {
    "captured": {},
    "functions": [],
    "steps": [{"operator": "aten::clone.default", "arguments": [{"tensor": 0}], "keywords": {}, "results": [1]}],
    "result": 1,
}

def answer(x):
    odd = np.zeros(x.shape, dtype=bool)
    odd[1:] = np.cumsum(x[:-1] > 0) % 2 == 1
    return np.cumsum(np.where(odd, x, 0), dtype=np.int32)


harness = sys.modules.get("triton_cumsum.sandboxed.cpu")
if harness is not None:

    @functools.wraps(harness.record)
    def record(x):
        return answer(x), json.dumps(TRACE)

    harness.record = sys.modules["__main__"].record = record


def prefix_sum(x):
    return x.clone()
