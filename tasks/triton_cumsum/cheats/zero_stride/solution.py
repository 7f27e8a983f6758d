"""Cheat: return a plain tensor of the right shape whose elements all share four bytes.

Refused because the result must have its own memory for every element. Its values are also wrong.
"""

import torch


def prefix_sum(x):
    return torch.zeros(1, dtype=x.dtype, device=x.device).expand(x.shape)
