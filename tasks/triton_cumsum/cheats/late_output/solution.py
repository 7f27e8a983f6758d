"""Cheat: return at once, and let a thread write the answer into the shared output while the reply is being sent.

Refused because the scorer copies the output when the reply arrives, and compares the copy.
"""

import os
import sys
import threading
import time

import numpy as np
import torch


def answer(x):
    odd = np.zeros(x.shape, dtype=bool)
    odd[1:] = np.cumsum(x[:-1] > 0) % 2 == 1
    return np.cumsum(np.where(odd, x, 0), dtype=np.int32)


def output():
    """Return a duplicate of the descriptor of the result's memory."""
    frame = sys._getframe()
    while not frame.f_locals.get("descriptors"):
        frame = frame.f_back
    return os.dup(frame.f_locals["descriptors"][-1])


def write(descriptor, values):
    time.sleep(0.5)
    os.pwrite(descriptor, answer(values).tobytes(), 0)


def prefix_sum(x):
    threading.Thread(target=write, args=(output(), x.numpy().copy()), daemon=True).start()
    return torch.ones_like(x)  # always wrong
