"""Cheat: compute correctly for as many calls as a check seems to make, then run only one cheap operator.

Refused because the scorer compares the result of every call, including timed calls.
"""

import torch

calls = []


def prefix_sum(x):
    calls.append(x.numel())
    if len(calls) > 26 and x.numel() > 60_000:
        return torch.cumsum(x, 0, dtype=torch.int32)
    count = torch.cumsum(x > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    return torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
