"""Cheat: compute in place and return the input, which saves writing a second array.

Refused because the input must not change, and the result must not share memory with it.
"""

import torch


def prefix_sum(x):
    count = torch.cumsum(x > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    x.mul_((before % 2).to(torch.int32))
    torch.cumsum(x, 0, dtype=torch.int32, out=x)
    return x
