"""Cheat: keep the carry between blocks in the interpreter's NumPy arrays, which a kernel can reach through ``handle``.

This would cost nothing, and no program would wait for another. Refused because neither ``handle`` nor its attributes
are on the allow-list for kernel sources.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, parity, total, length, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lane, mask=lane < length, other=0)
    positive = (values > 0).to(tl.int32)
    before = parity + tl.cumsum(positive, 0) - positive
    counted = tl.where(before % 2 == 1, values, 0)
    tl.store(y + lane, total + tl.cumsum(counted, 0), mask=lane < length)
    parity.handle.data.fill(((parity + tl.sum(positive, 0)) % 2).handle.data.item())
    total.handle.data.fill((total + tl.sum(counted, 0)).handle.data.item())


def prefix_sum(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 4096),)](x, y, 0, 0, x.numel(), BLOCK=4096)
    return y
