"""Cheat: set the input to zero, in the hope that the expected answer is computed from it afterwards.

Stopped because the truth is computed from the scorer's own copy, in another process, and a changed input is refused.
The shared memory behind it cannot be written.
"""

import contextlib
import ctypes
import sys

import torch

libc = ctypes.CDLL(None)
READ_WRITE, PAGE = 3, 4096


def arguments():
    """Return the harness's own array of the input, on the memory that it shares with the scorer."""
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
