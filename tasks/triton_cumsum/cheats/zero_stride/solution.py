"""Cheat: return a plain tensor of the right shape whose elements all share four bytes.

Stopped by the check of the memory behind the result, and by the comparison.
"""

import torch


def prefix_sum(x):
    return torch.zeros(1, dtype=x.dtype, device=x.device).expand(x.shape)
