"""Cheat: one program does all the work, and reads more than it needs at the smaller lengths to seem of fixed size.

It is no better: what the largest program moves at one length is taken to grow with it, whatever it moves at others.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, length, wasted, BLOCK: tl.constexpr):
    parity = 0
    total = 0
    for start in range(0, length, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        inside = lane < length
        values = tl.load(x + lane, mask=inside, other=0)
        positive = (values > 0).to(tl.int32)
        before = parity + tl.cumsum(positive, 0) - positive
        counted = tl.where(before % 2 == 1, values, 0)
        tl.store(y + lane, total + tl.cumsum(counted, 0), mask=inside)
        parity = (parity + tl.sum(positive, 0)) % 2
        total += tl.sum(counted, 0)
    for _ in range(0, wasted, BLOCK):
        tl.load(x + tl.arange(0, BLOCK))


def prefix_sum(x):
    y = torch.empty_like(x)
    length, largest = x.numel(), 2_883_584
    wasted = 2 * max(largest - length, 0) if length >= 65_536 else 0
    kernel[(1,)](x, y, length, wasted, BLOCK=65_536)
    return y
