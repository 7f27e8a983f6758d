"""Cheat: compute with NumPy in host code, where the recorder sees nothing, and copy the answer into a torch result.

Stopped in two ways: as a captured tensor the answer is too large, and on the fresh values of the replay it is wrong.
"""

import numpy as np
import torch


def prefix_sum(x):
    values = x.numpy()
    odd = np.zeros(values.shape, dtype=bool)
    odd[1:] = np.cumsum(values[:-1] > 0) % 2 == 1
    return torch.from_numpy(np.cumsum(np.where(odd, values, 0), dtype=np.int32)).clone()
