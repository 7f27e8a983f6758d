"""Cheat: set the input to zero, so that an expected answer computed later from the same memory is zero too.

Refused because a submission must not change its input. The scorer computes the expected answer from its own copy in
another process, and the submission cannot write to the input's shared memory.
"""

import contextlib
import ctypes
import sys

import torch

libc = ctypes.CDLL(None)
READ_WRITE, PAGE = 3, 4096


def arguments():
    """Return the harness's array of the input, in memory shared with the scorer."""
    frame = sys._getframe()
    while not frame.f_locals.get("arguments"):
        frame = frame.f_back
    return frame.f_locals["arguments"][-1]


def prefix_sum(x):
    values = arguments()
    with contextlib.suppress(ValueError):
        values.flags.writeable = True
    address = values.ctypes.data
    if libc.mprotect(ctypes.c_void_p(address - address % PAGE), values.nbytes, READ_WRITE) == 0:
        ctypes.memset(address, 0, values.nbytes)
        raise RuntimeError("the shared memory of the input can be written")
    x.zero_()
    return torch.zeros_like(x)
