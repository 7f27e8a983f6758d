import numpy as np
import torch


def answer(x):
    odd = np.zeros(x.shape, dtype=bool)
    odd[1:] = np.cumsum(x[:-1] > 0) % 2 == 1
    return np.cumsum(np.where(odd, x, 0), dtype=np.int32)


def prefix_sum(x):
    return torch.from_numpy(answer(x.numpy()))
