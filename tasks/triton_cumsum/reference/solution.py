"""The reference solution: one pass over memory, in which each tile looks back at the tiles before it.

Whether an element counts depends on the parity of the number of positive values before it. Three numbers summarise a
run of elements: the parity of its number of positive values, the sum of its counted elements if the parity before the
run is even, and this sum if the parity is odd. Such summaries combine associatively, so the problem is a scan, and each
element has to be read and written only once.

Three techniques keep the number of instructions low:

- A thread owns rows of 32 consecutive elements. The signs of a row are packed into one word, whose prefix parities
  take five shifts and exclusive-ors. Sums within a row are serial additions in registers.
- The rows of a tile need only one scan, of three numbers per row.
- Results are rearranged into whole rows before they are stored, so that the compiler stores whole sectors.

Two techniques keep waits short:

- The thread that owns a tile's last row publishes the tile's summary as soon as it is known, by atomic exchange, which
  becomes visible sooner than a store. The thread then reads the summaries of up to WINDOW preceding tiles, both words
  of each in one access, until it finds a tile whose total from the start is known. It then publishes its own total.
- Loads and stores of the array are marked as used once, so that published words stay in the cache.

Tiles are assigned in order, by a ticket. A tile therefore waits only for tiles that are already running or finished,
however few programs run at a time. Each word has its own flag, so the order in which words become visible does not
matter. All arithmetic is int32, which wraps around as the task requires. ``docs/tasks/triton_cumsum.md`` lists the gain
from each technique.
"""
# re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training

# ruff: noqa: FBT003, PLR0915, PLR0917 - kernels have many statements and arguments, and take boolean constants

from __future__ import annotations

import torch
import triton
import triton.language as tl

ROWS = 256
ROW = 32
WINDOW = 128
WARPS = 4

# A published word has a sum in the low 32 bits, then a parity, then the word's kind (0 if nothing is published yet).
PARITY = tl.constexpr(32)
FLAG = tl.constexpr(33)
SUMMARY = tl.constexpr(1)
TOTAL = tl.constexpr(2)
NOWHERE = tl.constexpr((1 << 20) + 1)


@triton.jit
def then(parity_a, even_a, odd_a, parity_b, even_b, odd_b):
    """Combine the summaries of two neighbouring runs."""
    even = even_a + tl.where(parity_a != 0, odd_b, even_b)
    odd = odd_a + tl.where(parity_a != 0, even_b, odd_b)
    return parity_a ^ parity_b, even, odd


@triton.jit
def add_two(a, b, x, y):
    """Add two pairs."""
    return a + x, b + y


@triton.jit
def word(total, parity, what: tl.constexpr):
    """Return the word that publishes a sum, a parity and their kind."""
    return (total.to(tl.int64) & 0xFFFFFFFF) + (parity.to(tl.int64) << PARITY) + (what << FLAG)


@triton.jit
def load_quarter(x, place, length, shift: tl.constexpr, FULL: tl.constexpr):
    """Load four elements of each row, starting ``shift`` elements into the row."""
    if FULL:
        values = tl.load(x + place + shift, eviction_policy="evict_first")
    else:
        values = tl.load(x + place + shift, mask=place + shift < length, other=0)
    return values


@triton.jit
def signs(values, column, shift: tl.constexpr):
    """Return for each row a word in which a bit is set for each positive value."""
    return tl.sum((values > 0).to(tl.int32) << (column + shift), axis=1)


@triton.jit
def counted(values, parities, column, shift: tl.constexpr):
    """Return the values before which the parity is odd, and zero in place of the others."""
    return tl.where(((parities[:, None] >> (column + shift)) & 1) != 0, values, 0)


@triton.jit
def scanned(values, parities, column, before, shift: tl.constexpr):
    """Return the results for four elements of each row, and the sum after these elements."""
    own = counted(values, parities, column, shift)
    return before[:, None] + tl.cumsum(own, axis=1), before + tl.sum(own, axis=1)


@triton.jit
def beside(left, right, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Join two blocks of ``COLUMNS`` columns side by side."""
    return tl.reshape(tl.permute(tl.join(left, right), (0, 2, 1)), (ROWS, 2 * COLUMNS))


@triton.jit
def look_back(words, tile, WINDOW: tl.constexpr):
    """Return the parity and the sum of everything before ``tile``, once the preceding tiles have published enough."""
    distance = tl.arange(0, WINDOW)
    neighbour = tile - 1 - distance
    place = 2 * neighbour[:, None] + tl.arange(0, 2)[None, :]
    published = tl.zeros((WINDOW, 2), tl.int64)
    first = 1
    while first % 2 == 1:  # a word of a nearer tile is missing, or no total is within the window
        published = tl.load(words + place, mask=place >= 0, other=0, volatile=True)
        even, odd = tl.split(published)
        missing = (even == 0) | (odd == 0)
        event = tl.where(even >> FLAG == TOTAL, 2 * distance, tl.where(missing, 2 * distance + 1, NOWHERE))
        first = tl.min(event, 0)
    nearest = first // 2
    even, odd = tl.split(published)
    parities = tl.where(distance <= nearest, ((even >> PARITY) & 1).to(tl.int32), 0)
    before = tl.cumsum(parities, 0, reverse=True) - parities
    chosen = tl.where((distance < nearest) & (before % 2 == 1), odd, even).to(tl.int32)
    parity, total = tl.reduce((parities, tl.where(distance <= nearest, chosen, 0)), 0, add_two)
    return parity % 2, total


@triton.jit
def scan_tile(x, y, words, tile, length, ROWS: tl.constexpr, WINDOW: tl.constexpr, FULL: tl.constexpr):
    """Compute one tile of ``32 * ROWS`` elements; ``FULL`` says that the whole tile is within the array."""
    row = tl.arange(0, ROWS)
    column = tl.arange(0, 4)[None, :]
    start = tile.to(tl.int64) * (32 * ROWS)
    place = start + 32 * row[:, None] + column
    v0 = load_quarter(x, place, length, 0, FULL)
    v1 = load_quarter(x, place, length, 4, FULL)
    v2 = load_quarter(x, place, length, 8, FULL)
    v3 = load_quarter(x, place, length, 12, FULL)
    v4 = load_quarter(x, place, length, 16, FULL)
    v5 = load_quarter(x, place, length, 20, FULL)
    v6 = load_quarter(x, place, length, 24, FULL)
    v7 = load_quarter(x, place, length, 28, FULL)

    bits = signs(v0, column, 0) + signs(v1, column, 4) + signs(v2, column, 8) + signs(v3, column, 12)
    bits += signs(v4, column, 16) + signs(v5, column, 20) + signs(v6, column, 24) + signs(v7, column, 28)
    bits ^= bits << 1
    bits ^= bits << 2
    bits ^= bits << 4
    bits ^= bits << 8
    bits ^= bits << 16
    own_parity = (bits >> 31) & 1
    bits = bits << 1  # bit i: the parity before element i of the row if the parity before the row is even

    all_own = tl.sum(v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7, axis=1)
    lower = counted(v0, bits, column, 0) + counted(v1, bits, column, 4)
    lower += counted(v2, bits, column, 8) + counted(v3, bits, column, 12)
    upper = counted(v4, bits, column, 16) + counted(v5, bits, column, 20)
    upper += counted(v6, bits, column, 24) + counted(v7, bits, column, 28)
    own_even = tl.sum(lower + upper, axis=1)
    own_odd = all_own - own_even

    parity, even, odd = tl.associative_scan((own_parity, own_even, own_odd), 0, then)
    last = row == ROWS - 1  # only the last row publishes, because its scan is the tile's summary
    here = words + 2 * tile + 0 * row
    parity_before = tl.zeros((), tl.int32)
    sum_before = tl.zeros((), tl.int32)
    if tile > 0:
        tl.atomic_xchg(here + 1, word(odd, parity, SUMMARY), mask=last, sem="relaxed")
        tl.atomic_xchg(here, word(even, parity, SUMMARY), mask=last, sem="relaxed")
        parity_before, sum_before = look_back(words, tile, WINDOW)
    total = sum_before + tl.where(parity_before == 1, odd, even)
    tl.atomic_xchg(here, word(total, parity ^ parity_before, TOTAL), mask=last, sem="relaxed")

    row_parity = parity ^ own_parity
    even_before = even - tl.where(row_parity != 0, own_odd, own_even)
    odd_before = odd - tl.where(row_parity != 0, own_even, own_odd)
    before = sum_before + tl.where(parity_before == 1, odd_before, even_before)
    bits ^= -(row_parity ^ parity_before)
    r0, before = scanned(v0, bits, column, before, 0)
    r1, before = scanned(v1, bits, column, before, 4)
    r2, before = scanned(v2, bits, column, before, 8)
    r3, before = scanned(v3, bits, column, before, 12)
    r4, before = scanned(v4, bits, column, before, 16)
    r5, before = scanned(v5, bits, column, before, 20)
    r6, before = scanned(v6, bits, column, before, 24)
    r7, before = scanned(v7, bits, column, before, 28)
    left = beside(beside(r0, r1, ROWS, 4), beside(r2, r3, ROWS, 4), ROWS, 8)
    right = beside(beside(r4, r5, ROWS, 4), beside(r6, r7, ROWS, 4), ROWS, 8)
    results = beside(left, right, ROWS, 16)
    target = start + 32 * row[:, None] + tl.arange(0, 32)[None, :]
    if FULL:
        tl.store(y + target, results, cache_modifier=".cs")
    else:
        tl.store(y + target, results, mask=target < length)


@triton.jit
def scan(x, y, ticket, words, length, ROWS: tl.constexpr, WINDOW: tl.constexpr):
    """Draw the number of the next tile, and compute that tile."""
    tile = tl.atomic_add(ticket, 1, sem="relaxed").to(tl.int32)
    if (tile.to(tl.int64) + 1) * (32 * ROWS) <= length:
        scan_tile(x, y, words, tile, length, ROWS, WINDOW, True)
    else:
        scan_tile(x, y, words, tile, length, ROWS, WINDOW, False)


def prefix_sum(x: torch.Tensor) -> torch.Tensor:
    """Return ``y``: ``y[i]`` is the sum of all ``x[j]``, ``1 <= j <= i``, that follow an odd number of positive values.

    Args:
        x: one-dimensional int32 tensor with at least one element.

    Returns:
        A new tensor of the same shape, dtype and device; ``y[0]`` is 0.
    """
    x = x.contiguous()
    tiles = triton.cdiv(x.numel(), ROWS * ROW)
    y = torch.empty_like(x)
    state = torch.zeros(2 * tiles + 1, dtype=torch.int64, device=x.device)
    words, ticket = state[: 2 * tiles], state[2 * tiles :]
    scan[(tiles,)](x, y, ticket, words, x.numel(), ROWS=ROWS, WINDOW=WINDOW, num_warps=WARPS)
    return y
