"""Not refused: a correct kernel with a single program, which a model of launches and total bytes alone would reward.

No better than the baseline, because the model limits each program to the bandwidth of one multiprocessor.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, length, BLOCK: tl.constexpr):
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


def prefix_sum(x):
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), BLOCK=16384)
    return y
