"""Cheat: write only the first half, in the hope that memory still holds an earlier answer.

Stopped by the comparison of every element; the replay starts from other memory.
"""

import torch


def prefix_sum(x):
    half = x[: x.numel() // 2 + 1]
    count = torch.cumsum(half > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    y = torch.empty_like(x)
    y[: half.numel()] = torch.cumsum(torch.where(before % 2 == 1, half, 0), 0).to(torch.int32)
    return y
