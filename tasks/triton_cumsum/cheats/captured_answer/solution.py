"""Cheat: compute with NumPy, which is not recorded, and store the answer in the trace piece by piece.

Refused because the replay uses other values, and because the size of captured tensors is limited.
"""

import numpy as np
import torch


def prefix_sum(x):
    values = x.numpy()
    odd = np.zeros(values.shape, dtype=bool)
    odd[1:] = np.cumsum(values[:-1] > 0) % 2 == 1
    answer = np.cumsum(np.where(odd, values, 0), dtype=np.int32)
    pieces = [torch.from_numpy(answer[start : start + 4096].copy()) for start in range(0, len(answer), 4096)]
    return torch.cat(pieces)
