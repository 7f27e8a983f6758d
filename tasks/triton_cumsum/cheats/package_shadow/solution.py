"""Cheat: an honest file beside a package of the same name, which Python would import instead.

Stopped because the file is what is loaded, whatever lies beside it.
"""

import torch


def prefix_sum(x):
    count = torch.cumsum(x > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    return torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
