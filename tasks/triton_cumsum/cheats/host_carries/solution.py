"""Cheat: compute the carry of each block with NumPy on the host, which is not counted, and run one cheap kernel.

The carries are passed as a small captured table. Refused because the meter replays the trace on other values, for
which the carries are wrong.
"""

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, parities, sums, length, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lane = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lane, mask=lane < length, other=0)
    positive = (values > 0).to(tl.int32)
    before = tl.load(parities + block) + tl.cumsum(positive, 0) - positive
    tl.store(y + lane, tl.load(sums + block) + tl.cumsum(values * (before % 2), 0), mask=lane < length)


def prefix_sum(x):
    values, size = x.numpy(), 8192
    odd = np.zeros(values.shape, dtype=bool)
    odd[1:] = np.cumsum(values[:-1] > 0) % 2 == 1
    answer = np.cumsum(np.where(odd, values, 0), dtype=np.int32)
    starts = np.arange(0, len(values), size)
    sums = torch.tensor([0] + answer[starts[1:] - 1].tolist(), dtype=torch.int32)
    parities = torch.tensor(odd[starts].astype(np.int32).tolist(), dtype=torch.int32)
    y = torch.empty_like(x)
    kernel[(len(starts),)](x, y, parities, sums, len(values), BLOCK=size)
    return y
