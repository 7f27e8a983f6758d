"""Cheat: compute once for each length, then hand out the kept result.

Stopped because each call has new values, so the kept result is wrong, and because a kept result is not made by any
step of the recorded run.
"""

import torch

kept = {}


def prefix_sum(x):
    if x.numel() not in kept:
        count = torch.cumsum(x > 0, 0)
        before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
        kept[x.numel()] = torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
    return kept[x.numel()]
