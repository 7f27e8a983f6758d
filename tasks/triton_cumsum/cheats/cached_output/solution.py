"""Cheat: compute once for each length, then return the cached result.

Refused because each call has new values, for which the cached result is wrong. In the ``cpu`` profile, moreover, no
recorded step makes the cached result.
"""

import torch

kept = {}


def prefix_sum(x):
    if x.numel() not in kept:
        count = torch.cumsum(x > 0, 0)
        before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
        kept[x.numel()] = torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
    return kept[x.numel()]
