"""Cheat: return a tensor that computes its values with NumPy only when they are read.

Refused because the meter replays only the recorded copy, without the returned object.
"""

import numpy as np
import torch


def answer(x):
    odd = np.zeros(x.shape, dtype=bool)
    odd[1:] = np.cumsum(x[:-1] > 0) % 2 == 1
    return np.cumsum(np.where(odd, x, 0), dtype=np.int32)


def prefix_sum(x):
    y = x.clone()
    y.numpy = lambda: answer(x.numpy())
    return y
