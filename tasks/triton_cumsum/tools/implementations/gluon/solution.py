"""The reference's algorithm in Gluon, for GPUs of compute capability 9: bulk copies load and store the tiles.

In Gluon, the code chooses the layouts; in Triton, the compiler does. A tile is in shared memory, swizzled so
that a thread can read rows of 32 consecutive elements without bank conflicts, while bulk copies move lines of 128
bytes. While a tile waits for the tiles before it, no registers hold its elements, so more tiles are in flight than
registers could hold. Results replace the elements in shared memory. Everything else is as in ``reference/solution.py``.

Triton's interpreter does not support Gluon, so profile ``cpu`` refuses this solution.
"""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

# ruff: noqa: N806, PLR0915, PLR0917 - kernels have many statements and arguments

from __future__ import annotations

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS = 256
ROW = 32
WINDOW = 128
WARPS = 4
REGISTERS = 80

# A published word has a sum in the low 32 bits, then a parity, then the word's kind (0 if nothing is published yet).
PARITY = gl.constexpr(32)
FLAG = gl.constexpr(33)
SUMMARY = gl.constexpr(1)
TOTAL = gl.constexpr(2)
NOWHERE = gl.constexpr((1 << 20) + 1)


@gluon.jit
def then(parity_a, even_a, odd_a, parity_b, even_b, odd_b):
    """Combine the summaries of two neighbouring runs."""
    even = even_a + gl.where(parity_a != 0, odd_b, even_b)
    odd = odd_a + gl.where(parity_a != 0, even_b, odd_b)
    return parity_a ^ parity_b, even, odd


@gluon.jit
def add(a, x):
    """Add two numbers."""
    return a + x


@gluon.jit
def add_two(a, b, x, y):
    """Add two pairs."""
    return a + x, b + y


@gluon.jit
def word(total, parity, what: gl.constexpr):
    """Return the word that publishes a sum, a parity and their kind."""
    return (total.to(gl.int64) & 0xFFFFFFFF) + (parity.to(gl.int64) << PARITY) + (what << FLAG)


@gluon.jit
def counted(values, parities, column):
    """Return the values before which the parity is odd, and zero in place of the others."""
    return gl.where(((parities[:, None] >> column) & 1) != 0, values, 0)


@gluon.jit
def flat(pairs, FLAT: gl.constexpr):
    """Split pairs into their left and right elements, both in the layout ``FLAT``, which can be scanned."""
    left, right = gl.split(pairs)
    return gl.convert_layout(left, FLAT), gl.convert_layout(right, FLAT)


@gluon.jit
def look_back(words, tile, WINDOW: gl.constexpr, FLAT: gl.constexpr):
    """Return the parity and the sum of everything before ``tile``, once the preceding tiles have published enough."""
    PAIRS: gl.constexpr = gl.BlockedLayout([1, 2], [32, 1], [gl.num_warps(), 1], [1, 0])
    distance = gl.arange(0, WINDOW, layout=FLAT)
    neighbour = tile - 1 - gl.arange(0, WINDOW, layout=gl.SliceLayout(1, PAIRS))
    place = 2 * neighbour[:, None] + gl.arange(0, 2, layout=gl.SliceLayout(0, PAIRS))[None, :]
    published = gl.zeros((WINDOW, 2), gl.int64, layout=PAIRS)
    first = 1
    while first % 2 == 1:  # a word of a nearer tile is missing, or no total is within the window
        published = gl.load(words + place, mask=place >= 0, other=0, volatile=True)
        even, odd = flat(published, FLAT)
        missing = (even == 0) | (odd == 0)
        event = gl.where(even >> FLAG == TOTAL, 2 * distance, gl.where(missing, 2 * distance + 1, NOWHERE))
        first = gl.min(event, 0)
    nearest = first // 2
    even, odd = flat(published, FLAT)
    parities = gl.where(distance <= nearest, ((even >> PARITY) & 1).to(gl.int32), 0)
    before = gl.associative_scan(parities, 0, add, reverse=True) - parities
    chosen = gl.where((distance < nearest) & (before % 2 == 1), odd, even).to(gl.int32)
    parity, total = gl.reduce((parities, gl.where(distance <= nearest, chosen, 0)), 0, add_two)
    return parity % 2, total


@gluon.jit
def scan(source, target, x, y, ticket, words, length, ROWS: gl.constexpr, WINDOW: gl.constexpr, SHARED: gl.constexpr):
    """Draw the number of the next tile, and compute that tile.

    ``source`` and ``target`` are descriptors of ``x`` and ``y`` as rows, for bulk copies.
    """
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 32], [32, 1], [gl.num_warps(), 1], [1, 0])
    FLAT: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    buffer = gl.allocate_shared_memory(gl.int32, [ROWS, 32], SHARED)
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    fence_async_shared()  # makes the barrier visible to the bulk copies
    tile = gl.atomic_add(ticket, 1, sem="relaxed").to(gl.int32)
    if (tile.to(gl.int64) + 1) * (32 * ROWS) <= length:  # the whole tile is within the array
        mbarrier.expect(arrived, 128 * ROWS)
        tma.async_copy_global_to_shared(source, [tile * ROWS, 0], arrived, buffer)
    column = gl.arange(0, 32, layout=gl.SliceLayout(0, LAYOUT))[None, :]
    first = tile.to(gl.int64) * (32 * ROWS)
    row = gl.arange(0, ROWS, layout=FLAT)
    if first + 32 * ROWS <= length:
        mbarrier.wait(arrived, 0)
    else:
        place = first + 32 * gl.arange(0, ROWS, layout=gl.SliceLayout(1, LAYOUT))[:, None] + column
        buffer.store(gl.load(x + place, mask=place < length, other=0))
    values = buffer.load(LAYOUT)
    bits = gl.sum((values > 0).to(gl.int32) << column, axis=1)
    bits ^= bits << 1
    bits ^= bits << 2
    bits ^= bits << 4
    bits ^= bits << 8
    bits ^= bits << 16
    own_parity = gl.convert_layout((bits >> 31) & 1, FLAT)
    bits = bits << 1  # bit i: the parity before element i of the row if the parity before the row is even
    own_even = gl.convert_layout(gl.sum(counted(values, bits, column), axis=1), FLAT)
    own_odd = gl.convert_layout(gl.sum(values, axis=1), FLAT) - own_even
    parity, even, odd = gl.associative_scan((own_parity, own_even, own_odd), 0, then)
    last = row == ROWS - 1  # only the last row publishes, because its scan is the tile's summary
    here = words + 2 * tile + 0 * row
    if tile > 0:
        gl.atomic_xchg(here + 1, word(odd, parity, SUMMARY), mask=last, sem="relaxed")
        gl.atomic_xchg(here, word(even, parity, SUMMARY), mask=last, sem="relaxed")
    row_parity = parity ^ own_parity
    even_before = even - gl.where(row_parity != 0, own_odd, own_even)
    odd_before = odd - gl.where(row_parity != 0, own_even, own_odd)

    parity_before = gl.to_tensor(0)
    sum_before = gl.to_tensor(0)
    if tile > 0:
        parity_before, sum_before = look_back(words, tile, WINDOW, FLAT)
    total = sum_before + gl.where(parity_before == 1, odd, even)
    gl.atomic_xchg(here, word(total, parity ^ parity_before, TOTAL), mask=last, sem="relaxed")

    before = sum_before + gl.where(parity_before == 1, odd_before, even_before)
    before = gl.convert_layout(before, gl.SliceLayout(1, LAYOUT))
    bits ^= gl.convert_layout(-(row_parity ^ parity_before), gl.SliceLayout(1, LAYOUT))
    results = before[:, None] + gl.associative_scan(counted(buffer.load(LAYOUT), bits, column), 1, add)
    if first + 32 * ROWS <= length:
        buffer.store(results)
        fence_async_shared()
        tma.async_copy_shared_to_global(target, [tile * ROWS, 0], buffer)
    else:
        place = first + 32 * gl.arange(0, ROWS, layout=gl.SliceLayout(1, LAYOUT))[:, None] + column
        gl.store(y + place, results, mask=place < length)
    tma.store_wait(pendings=0)
    mbarrier.invalidate(arrived)  # otherwise Triton reuses the barrier's memory, and one call in ten is wrong


def prefix_sum(x: torch.Tensor) -> torch.Tensor:
    """Return ``y``, where ``y[i]`` sums those ``x[j]``, ``1 <= j <= i``, with an odd number of positives before them.

    Args:
        x: one-dimensional int32 tensor with at least one element.

    Returns:
        A new tensor of the same shape, dtype and device; ``y[0]`` is 0.
    """
    x = x.contiguous() if x.data_ptr() % 16 == 0 else x.clone(memory_format=torch.contiguous_format)
    length = x.numel()
    tiles = triton.cdiv(length, ROWS * ROW)
    y = torch.empty_like(x)
    state = torch.zeros(2 * tiles + 1, dtype=torch.int64, device=x.device)
    words, ticket = state[: 2 * tiles], state[2 * tiles :]
    shared = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    shape, strides, block = [max(1, length // ROW), ROW], [ROW, 1], [ROWS, ROW]
    source, target = (TensorDescriptor(tensor, shape, strides, block, shared) for tensor in (x, y))
    options = {"ROWS": ROWS, "WINDOW": WINDOW, "SHARED": shared, "num_warps": WARPS, "maxnreg": REGISTERS}
    scan[(tiles,)](source, target, x, y, ticket, words, length, **options)
    return y
