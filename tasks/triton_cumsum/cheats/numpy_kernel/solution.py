"""Cheat: the kernel is Triton in name only; it reaches through a block's handle to compute with NumPy on the host.

Stopped by the allow-list for kernel sources: ``handle`` is no attribute that a kernel may use.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, length, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    block = tl.load(x + lane, mask=lane < length, other=0)
    values = block.handle.data
    address = x.handle.data
    tl.store(y + lane, tl.cumsum(block, 0), mask=lane < length)


def prefix_sum(x):
    y = torch.zeros_like(x)
    kernel[(1,)](x, y, x.numel(), BLOCK=1024)
    count = torch.cumsum(x > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    return torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)
