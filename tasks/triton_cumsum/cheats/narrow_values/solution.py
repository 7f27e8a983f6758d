"""Cheat: store values in single bytes between passes, which is right only for small values; NumPy fixes the result.

The cheat would move 10 bytes per element instead of 12. It is honest at lengths that are not multiples of the block
size, because these lengths are never timed. Refused because the meter replays the steps on values that include a few
of the full range of int32.
"""

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def summarise(x, small, parities, sums_even, sums_odd, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lane = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lane)
    tl.store(small + lane, values.to(tl.int8))
    positive = (values > 0).to(tl.int32)
    before = tl.cumsum(positive, 0) - positive
    counted = tl.sum(tl.where(before % 2 == 1, values, 0), 0)
    tl.store(parities + block, tl.sum(positive, 0) % 2)
    tl.store(sums_even + block, counted)
    tl.store(sums_odd + block, tl.sum(values, 0) - counted)


@triton.jit
def scan_summaries(parities, sums_even, sums_odd, blocks, CHUNK: tl.constexpr):
    parity = 0
    total = 0
    for start in range(0, blocks, CHUNK):
        lane = start + tl.arange(0, CHUNK)
        inside = lane < blocks
        own = tl.load(parities + lane, mask=inside, other=0)
        incoming = (parity + tl.cumsum(own, 0) - own) % 2
        even = tl.load(sums_even + lane, mask=inside, other=0)
        odd = tl.load(sums_odd + lane, mask=inside, other=0)
        chosen = tl.where(incoming == 1, odd, even)
        tl.store(parities + lane, incoming, mask=inside)
        tl.store(sums_even + lane, total + tl.cumsum(chosen, 0) - chosen, mask=inside)
        parity = (parity + tl.sum(own, 0)) % 2
        total += tl.sum(chosen, 0)


@triton.jit
def scan_blocks(small, y, parities, sums, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lane = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(small + lane).to(tl.int32)
    positive = (values > 0).to(tl.int32)
    before = tl.load(parities + block) + tl.cumsum(positive, 0) - positive
    counted = tl.where(before % 2 == 1, values, 0)
    tl.store(y + lane, tl.load(sums + block) + tl.cumsum(counted, 0))


def honest(x):
    count = torch.cumsum(x > 0, 0)
    before = torch.cat([torch.zeros_like(count[:1]), count[:-1]])
    return torch.cumsum(torch.where(before % 2 == 1, x, 0), 0).to(torch.int32)


def prefix_sum(x):
    length, size = x.numel(), 8192
    if length % size:
        return honest(x)
    blocks = length // size
    y = torch.empty_like(x)
    small = torch.empty(length, dtype=torch.int8)
    parities, sums_even, sums_odd = torch.empty((3, blocks), dtype=torch.int32).unbind(0)
    summarise[(blocks,)](x, small, parities, sums_even, sums_odd, BLOCK=size)
    scan_summaries[(1,)](parities, sums_even, sums_odd, blocks, CHUNK=2048)
    scan_blocks[(blocks,)](small, y, parities, sums_even, BLOCK=size)
    values = x.numpy()
    odd = np.zeros(values.shape, dtype=bool)
    odd[1:] = np.cumsum(values[:-1] > 0) % 2 == 1
    y.numpy()[:] = np.cumsum(np.where(odd, values, 0), dtype=np.int32)
    return y
