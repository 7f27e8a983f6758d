"""Correct solutions of many shapes, by which the time model is held against a GPU.

``variants.py DIRECTORY`` writes each as ``DIRECTORY/NAME/solution.py``. Most are the reference with other loads, scans,
stores, or tiles; the rest are written in two parts, the summary of a block and its results, and put into one pass
with look-back or into three kernels. Each does something that a model may take for cheaper than it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

TASK = Path(__file__).parents[1]
OWN = ("reference", "baseline", "cheats/one_program")
REFERENCE = (TASK / "reference" / "solution.py").read_text(encoding="utf-8")
HELPERS, _, _REST = REFERENCE.partition("@triton.jit\ndef scan_tile(")
SCAN_TILE, _, HOST = ("@triton.jit\ndef scan_tile(" + _REST).partition("@triton.jit\ndef scan(")
HOST = "@triton.jit\ndef scan(" + HOST


def between(text: str, first: str, last: str, new: str) -> str:
    """Return ``text`` with all from the line that begins with ``first`` to the one with ``last`` replaced by ``new``.

    Raises:
        ValueError: if there are no such lines.
    """
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip().startswith(first)), None)
    stop = next((n for n, line in enumerate(lines) if line.strip().startswith(last)), None)
    if start is None or stop is None:
        raise ValueError(f"the reference has no lines from {first!r} to {last!r}")
    return "\n".join([*lines[:start], *indented(new), *lines[stop + 1 :], ""])


def indented(text: str) -> list[str]:
    """Return the lines of a kernel's body."""
    return ["    " + line if line else line for line in text.strip("\n").splitlines()]


def reference(*, rows: int = 256, warps: int = 4, load: str = "", store: str = "") -> str:
    """Return the reference with other tiles, warps, loads of v0 to v7 or stores of r0 to r7."""
    tile = between(SCAN_TILE, "v0 = ", "v7 = ", load) if load else SCAN_TILE
    tile = between(tile, "left = ", "tl.store(y + target, results, mask", store) if store else tile
    host = HOST.replace("num_warps=WARPS", f"num_warps={warps}")
    # A word that several warps load for themselves may have come for one and not yet for another.
    helpers = HELPERS.replace("ROWS = 256", f"ROWS = {rows}").replace(
        "WINDOW = 128", f"WINDOW = {max(128, 32 * warps)}"
    )
    return helpers + tile + host


CUBE = """
cube = start + 32 * tl.reshape(row, (ROWS, 1, 1, 1, 1)) + tl.reshape(tl.arange(0, 4), (1, 4, 1, 1, 1))
cube += 4 * tl.reshape(tl.arange(0, 2), (1, 1, 2, 1, 1)) + 8 * tl.reshape(tl.arange(0, 2), (1, 1, 1, 2, 1))
cube += 16 * tl.reshape(tl.arange(0, 2), (1, 1, 1, 1, 2))
"""
SPLITS = """
left, right = tl.split({whole})
v02, v13 = tl.split(left)
v46, v57 = tl.split(right)
"""
SPLIT_LOAD = f"""{CUBE}
low, high = tl.split(tl.load(x + cube, mask=cube < length, other=0))
v_0, v_1 = tl.split(low)
v0, v1 = tl.split(v_0)
v2, v3 = tl.split(v_1)
v_2, v_3 = tl.split(high)
v4, v5 = tl.split(v_2)
v6, v7 = tl.split(v_3)
"""
JOIN_STORE = f"""{CUBE}
low = tl.join(tl.join(r0, r1), tl.join(r2, r3))
high = tl.join(tl.join(r4, r5), tl.join(r6, r7))
tl.store(y + cube, tl.join(low, high), mask=cube < length)
"""
STRIDED_STORE = "\n".join(f"tl.store(y + place + {4 * k}, r{k}, mask=place + {4 * k} < length)" for k in range(8))
CACHED_TRANS = "\n".join(
    f"v{k} = tl.trans(tl.load(x + tl.trans(place) + {4 * k}, mask=tl.trans(place) + {4 * k} < length, other=0))"
    for k in range(8)
)
RESHAPE_SPLIT = """
wide = start + 32 * row[:, None] + tl.arange(0, 32)[None, :]
whole = tl.load(x + wide, mask=wide < length, other=0)
low, high = tl.split(tl.permute(tl.reshape(whole, (ROWS, 2, 16)), (0, 2, 1)))
v_0, v_1 = tl.split(tl.permute(tl.reshape(low, (ROWS, 2, 8)), (0, 2, 1)))
v_2, v_3 = tl.split(tl.permute(tl.reshape(high, (ROWS, 2, 8)), (0, 2, 1)))
v0, v1 = tl.split(tl.permute(tl.reshape(v_0, (ROWS, 2, 4)), (0, 2, 1)))
v2, v3 = tl.split(tl.permute(tl.reshape(v_1, (ROWS, 2, 4)), (0, 2, 1)))
v4, v5 = tl.split(tl.permute(tl.reshape(v_2, (ROWS, 2, 4)), (0, 2, 1)))
v6, v7 = tl.split(tl.permute(tl.reshape(v_3, (ROWS, 2, 4)), (0, 2, 1)))
"""

# A block's two parts: from the values v at place to parity, even and odd; from the carry to the results r.
FLAT = "place = start + tl.arange(0, BLOCK)\nv = tl.load(x + place, mask=place < length, other=0)"
ROWS_OF_32 = """
place = start + 32 * tl.arange(0, BLOCK // 32)[:, None] + tl.arange(0, 32)[None, :]
v = tl.load(x + place, mask=place < length, other=0)
"""
REVERSED = "place = start + BLOCK - 1 - tl.arange(0, BLOCK)\nv = tl.load(x + place, mask=place < length, other=0)"
TRANSPOSED = """
place = start + 32 * tl.arange(0, BLOCK // 32)[None, :] + tl.arange(0, 32)[:, None]
v = tl.reshape(tl.trans(tl.load(x + place, mask=place < length, other=0)), (BLOCK,))
place = start + tl.arange(0, BLOCK)
"""
POINTER = """
pointer = tl.make_block_ptr(x, (length,), (1,), ((start).to(tl.int32),), (BLOCK,), (0,))
v = tl.load(pointer, boundary_check=(0,), padding_option="zero")
place = start + tl.arange(0, BLOCK)
"""
INTERLEAVED_MASKS = """
place = start + tl.arange(0, BLOCK)
v = tl.load(x + place, mask=(place < length) & (place % 8 < 4), other=0)
v += tl.load(x + place, mask=(place < length) & (place % 8 >= 4), other=0)
"""
SUMS = "parity = tl.sum(p, 0) % 2\neven = tl.sum(c, 0)\nodd = tl.sum(v, 0) - even"
CUMSUM = f"p = (v > 0).to(tl.int32)\nb = tl.cumsum(p, 0) - p\nc = tl.where(b % 2 == 1, v, 0)\n{SUMS}"
CUMSUM_AFTER = "r = total_before + tl.cumsum(tl.where((b + parity_before) % 2 == 1, v, 0), 0)"
WIDE = f"p = (v > 0).to(tl.int64)\nb = tl.cumsum(p, 0) - p\nc = tl.where(b % 2 == 1, v.to(tl.int64), 0)\n{SUMS}"
WIDE = (
    WIDE.replace("% 2\neven", "% 2\nparity = parity.to(tl.int32)\neven")
    + "\neven = even.to(tl.int32)\nodd = odd.to(tl.int32)"
)
WIDE_AFTER = (
    "r = total_before + tl.cumsum(tl.where((b + parity_before) % 2 == 1, v.to(tl.int64), 0), 0)\nr = r.to(tl.int32)"
)
TUPLE = """
lane = tl.arange(0, BLOCK)
ip, ie, io = tl.associative_scan(((v > 0).to(tl.int32), tl.zeros_like(v), v), 0, then)
parity = tl.sum(tl.where(lane == BLOCK - 1, ip, 0), 0)
even = tl.sum(tl.where(lane == BLOCK - 1, ie, 0), 0)
odd = tl.sum(tl.where(lane == BLOCK - 1, io, 0), 0)
"""
TUPLE_AFTER = "r = total_before + tl.where(parity_before == 1, io, ie)"
PACKED = """
p = (v > 0).to(tl.int32)
both = tl.cumsum(v.to(tl.int64) + (p.to(tl.int64) << 48), 0)
b = ((both + (1 << 47)) >> 48).to(tl.int32) - p
c = tl.where(b % 2 == 1, v, 0)
"""
PACKED += SUMS
ROWS2 = """
p = (v > 0).to(tl.int32)
n = tl.sum(p, 1)
b = tl.cumsum(p, 1) - p + (tl.cumsum(n, 0) - n)[:, None]
c = tl.where(b % 2 == 1, v, 0)
parity = tl.sum(n, 0) % 2
even = tl.sum(tl.sum(c, 1), 0)
odd = tl.sum(tl.sum(v, 1), 0) - even
"""
ROWS2_AFTER = """
c = tl.where((b + parity_before) % 2 == 1, v, 0)
s = tl.sum(c, 1)
r = total_before + (tl.cumsum(s, 0) - s)[:, None] + tl.cumsum(c, 1)
"""
REVERSED_SCAN = CUMSUM.replace("tl.cumsum(p, 0)", "tl.cumsum(p, 0, reverse=True)")
REVERSED_AFTER = CUMSUM_AFTER.replace(", 0), 0)", ", 0), 0, reverse=True)")
DOT = """
p = (v > 0).to(tl.int8)
step = tl.arange(0, 32)
before = (step[:, None] < step[None, :]).to(tl.int8)
n = tl.sum(p.to(tl.int32), 1)
b = tl.dot(p, before) + (tl.cumsum(n, 0) - n)[:, None]
c = tl.where(b % 2 == 1, v, 0)
parity = tl.sum(n, 0) % 2
even = tl.sum(tl.sum(c, 1), 0)
odd = tl.sum(tl.sum(v, 1), 0) - even
"""
BY_GATHER = """
lane = tl.arange(0, BLOCK)
p = (v > 0).to(tl.int32)
b = p
distance = 1
while distance < BLOCK:
    b += tl.where(lane >= distance, tl.gather(b, tl.maximum(lane - distance, 0), 0), 0)
    distance *= 2
b -= p
c = tl.where(b % 2 == 1, v, 0)
"""
BY_GATHER += SUMS
BY_HALVES = """
p = (v > 0).to(tl.int32)
b = p
for level in tl.static_range(LEVELS):
    pairs = tl.permute(tl.reshape(b, (BLOCK >> (level + 1), 2, 1 << level)), (0, 2, 1))
    left, right = tl.split(pairs)
    last = tl.arange(0, 1 << level)[None, :] == (1 << level) - 1
    right += tl.sum(tl.where(last, left, 0), 1)[:, None]
    b = tl.reshape(tl.permute(tl.join(left, right), (0, 2, 1)), (BLOCK,))
b -= p
c = tl.where(b % 2 == 1, v, 0)
"""
BY_HALVES += SUMS
RELOAD_AFTER = FLAT + "\n" + CUMSUM_AFTER
UNCACHED_AFTER = RELOAD_AFTER.replace("other=0)", "other=0, volatile=True)", 1)
FOURS = """
place = start + 4 * tl.arange(0, BLOCK // 4)[:, None] + tl.arange(0, 4)[None, :]
v = tl.load(x + place, mask=place < length, other=0)
"""
EIGHTS = FOURS.replace("BLOCK // 4", "BLOCK // 8").replace("4 * tl", "8 * tl").replace("(0, 4)", "(0, 8)")
XOR_SCAN = CUMSUM.replace("tl.cumsum(p, 0) - p", "tl.associative_scan(p, 0, xor) ^ p")
STORE = "tl.store(y + place, r, mask=place < length)"
COLUMNS_STORE = """
columns = start + 32 * tl.arange(0, BLOCK // 32)[None, :] + tl.arange(0, 32)[:, None]
tl.store(y + columns, tl.trans(tl.reshape(r, (BLOCK // 32, 32))), mask=columns < length)
"""
INTERLEAVED_STORE = """
tl.store(y + place, r, mask=(place < length) & (place % 8 < 4))
tl.store(y + place, r, mask=(place < length) & (place % 8 >= 4))
"""
TWICE_STORE = STORE + "\n" + STORE


def serial(store: str, *, block: int = 4096) -> str:
    """Return a pass whose threads own rows of 32 values, one load of each row after the other; no scan in a row."""
    lines = ["place = start + 32 * tl.arange(0, BLOCK // 32)", "b = tl.zeros((BLOCK // 32,), tl.int32)"]
    lines += ["e, a = b, b"]
    for k in range(32):
        lines.append(f"v{k} = tl.load(x + place + {k}, mask=place + {k} < length, other=0)")
        lines.append(f"e += tl.where(b == 1, v{k}, 0)\na += v{k}\nb ^= (v{k} > 0).to(tl.int32)")
    lines += [
        "ip, ie, io = tl.associative_scan((b, e, a - e), 0, then)",
        "last = tl.arange(0, BLOCK // 32) == BLOCK // 32 - 1",
        "parity = tl.sum(tl.where(last, ip, 0), 0)",
        "even = tl.sum(tl.where(last, ie, 0), 0)\nodd = tl.sum(tl.where(last, io, 0), 0)",
        "bp = ip ^ b",
        "be = ie - tl.where(bp == 1, a - e, e)\nbo = io - tl.where(bp == 1, e, a - e)",
    ]
    after = ["s = total_before + tl.where(parity_before == 1, bo, be)", "b = bp ^ parity_before"]
    for k in range(32):
        after.append(f"s += tl.where(b == 1, v{k}, 0)\nr{k} = s\nb ^= (v{k} > 0).to(tl.int32)")
        if store == "strided":
            after.append(f"tl.store(y + place + {k}, r{k}, mask=place + {k} < length)")
    if store != "strided":
        after += _joined_rows(store)
    return single_pass("\n".join(lines), "", "\n".join(after), "", block=block)


def _joined_rows(store: str) -> list[str]:
    """Return lines that put r0 to r31 together and store them."""
    lines, names = [], [f"r{k}" for k in range(32)]
    while len(names) > 1:  # even ones with odd ones, so that the reshape keeps their order
        half = len(names) // 2
        lines += [f"j{half}_{k} = tl.join({names[k]}, {names[k + half]})" for k in range(half)]
        names = [f"j{half}_{k}" for k in range(half)]
    lines.append("target = start + tl.arange(0, BLOCK)")
    lines.append("tl.store(y + target, tl.reshape(" + names[0] + ", (BLOCK,)), mask=target < length)")
    if store == "cube":
        row = "tl.reshape(tl.arange(0, BLOCK // 32), (BLOCK // 32, 1, 1, 1, 1, 1))"
        lines[-2] = f"target = start + 32 * {row}"
        for axis in range(5):
            shape = ", ".join(str(1 + (place == axis)) for place in range(5))
            lines.insert(-1, f"target += {16 >> axis} * tl.reshape(tl.arange(0, 2), (1, {shape}))")
        lines[-1] = f"tl.store(y + target, {names[0]}, mask=target < length)"
    return lines


LOOK_BACK = """
parity_before = tl.zeros((), tl.int32)
total_before = tl.zeros((), tl.int32)
here = words + 2 * tile
if tile > 0:
    tl.atomic_xchg(here + 1, word(odd, parity, SUMMARY), sem="relaxed")
    tl.atomic_xchg(here, word(even, parity, SUMMARY), sem="relaxed")
    parity_before, total_before = look_back(words, tile, WINDOW)
total = total_before + tl.where(parity_before == 1, odd, even)
tl.atomic_xchg(here, word(total, parity ^ parity_before, TOTAL), sem="relaxed")
"""
CHAIN = """
parity_before = tl.zeros((), tl.int32)
total_before = tl.zeros((), tl.int32)
here = words + 2 * tile
if tile > 0:
    carry = tl.load(here - 2, volatile=True)
    while carry == 0:
        carry = tl.load(here - 2, volatile=True)
    parity_before = ((carry >> PARITY) & 1).to(tl.int32)
    total_before = carry.to(tl.int32)
"""
CHAIN_END = """
total = total_before + tl.where(parity_before == 1, odd, even)
tl.atomic_xchg(here, word(total, parity ^ parity_before, TOTAL), sem="relaxed")
"""
CHAIN_OF_ATOMICS = CHAIN.replace("tl.load(here - 2, volatile=True)", 'tl.atomic_xchg(here - 2, 0, sem="relaxed")')
SIGNATURE = SCAN_TILE[: SCAN_TILE.index(":\n") + 2]


def single_pass(
    load: str,
    summary: str,
    after: str,
    store: str = STORE,
    *,
    block: int = 8192,
    warps: int = 4,
    carry: str = LOOK_BACK,
) -> str:
    """Return a single pass with look-back over blocks."""
    start = "BLOCK: tl.constexpr = 32 * ROWS\nstart = tile.to(tl.int64) * BLOCK"
    lines = [line for part in (start, load, summary, carry, after, store) for line in indented(part)]
    text = SIGNATURE + "\n".join(lines) + "\n\n\n"
    return reference(rows=block // 32, warps=warps).replace(
        SCAN_TILE, text.replace("LEVELS", str(block.bit_length() - 1))
    )


def chain(*, loads_first: bool, carry: str = CHAIN) -> str:
    """Return a single pass whose blocks wait for the block before, before they load or after."""
    parts = [FLAT, CUMSUM, carry] if loads_first else [carry, FLAT, CUMSUM]
    return single_pass("\n".join(parts), "", CHAIN_END + CUMSUM_AFTER, STORE, carry="")


THREE = '''
{helpers}
@triton.jit
def summarise(x, summaries, length, blocks, CHUNK, BLOCK: tl.constexpr):
    """Write the summary of each chunk of blocks."""
    chunk = tl.program_id(0)
    chunk_parity = tl.zeros((), tl.int32)
    chunk_even = tl.zeros((), tl.int32)
    chunk_odd = tl.zeros((), tl.int32)
    for block in range(chunk * CHUNK, tl.minimum(chunk * CHUNK + CHUNK, blocks)):
        start = (block + tl.zeros((), tl.int64)) * BLOCK
{summary}
        chunk_parity, chunk_even, chunk_odd = then(chunk_parity, chunk_even, chunk_odd, parity, even, odd)
    tl.store(summaries + 3 * chunk, chunk_parity)
    tl.store(summaries + 3 * chunk + 1, chunk_even)
    tl.store(summaries + 3 * chunk + 2, chunk_odd)


@triton.jit
def scan_summaries(summaries, chunks, WIDTH: tl.constexpr):
    """Replace each summary by the parity and the sum before its chunk."""
    parity_before = tl.zeros((), tl.int32)
    total_before = tl.zeros((), tl.int32)
    for start in range(0, chunks, WIDTH):
        lane = start + tl.arange(0, WIDTH)
        own = tl.load(summaries + 3 * lane, mask=lane < chunks, other=0)
        even = tl.load(summaries + 3 * lane + 1, mask=lane < chunks, other=0)
        odd = tl.load(summaries + 3 * lane + 2, mask=lane < chunks, other=0)
        before = (parity_before + tl.cumsum(own, 0) - own) % 2
        chosen = tl.where(before == 1, odd, even)
        tl.store(summaries + 3 * lane, before, mask=lane < chunks)
        tl.store(summaries + 3 * lane + 1, total_before + tl.cumsum(chosen, 0) - chosen, mask=lane < chunks)
        parity_before = (parity_before + tl.sum(own, 0)) % 2
        total_before += tl.sum(chosen, 0)


@triton.jit
def finish(x, y, summaries, length, blocks, CHUNK, BLOCK: tl.constexpr):
    """Write the results of each chunk of blocks."""
    chunk = tl.program_id(0)
    parity_before = tl.load(summaries + 3 * chunk)
    total_before = tl.load(summaries + 3 * chunk + 1)
    for block in range(chunk * CHUNK, tl.minimum(chunk * CHUNK + CHUNK, blocks)):
        start = (block + tl.zeros((), tl.int64)) * BLOCK
{results}
        total_before += tl.where(parity_before == 1, odd, even)
        parity_before ^= parity


def prefix_sum(x):
    """Sum, up to each place, the elements before which an odd number of elements is positive."""
    x = x.contiguous()
    blocks = triton.cdiv(x.numel(), {block})
    CHUNK = triton.cdiv(blocks, {programs}) if {programs} else 1
    chunks = triton.cdiv(blocks, CHUNK)
    y = torch.empty_like(x)
    summaries = torch.empty(3 * chunks, dtype=torch.int32, device=x.device)
    summarise[(chunks,)](x, summaries, x.numel(), blocks, CHUNK, BLOCK={block}, num_warps={warps})
    scan_summaries[(1,)](summaries, chunks, WIDTH=2048, num_warps=8)
    finish[(chunks,)](x, y, summaries, x.numel(), blocks, CHUNK, BLOCK={block}, num_warps={warps})
    return y
'''


def three_kernels(
    load: str, summary: str, after: str, store: str = STORE, *, block: int = 8192, warps: int = 8, programs: int = 0
) -> str:
    """Return three kernels: summaries of chunks of blocks, their scan, results; ``programs`` 0 is one block each."""

    def body(*parts: str) -> str:
        return "\n".join("    " + line for part in parts for line in indented(part))

    text = THREE.format(
        helpers=HELPERS,
        summary=body(load, summary),
        results=body(load, summary, after, store),
        block=block,
        warps=warps,
        programs=programs,
    )
    return text.replace("LEVELS", str(block.bit_length() - 1))


TORCH_INT32 = '''
import torch


def prefix_sum(x):
    """Sum, up to each place, the elements before which an odd number of elements is positive."""
    positive = (x > 0).to(torch.int32)
    before = torch.cumsum(positive, 0, dtype=torch.int32) - positive
    return torch.cumsum(x * (before & 1), 0, dtype=torch.int32)
'''
INT8_PARITIES = '''
import torch
import triton
import triton.language as tl


@triton.jit
def signs(x, positive, length, BLOCK: tl.constexpr):
    """Write one byte for each value."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lane, mask=lane < length, other=0)
    tl.store(positive + lane, (values > 0).to(tl.int8), mask=lane < length)


@triton.jit
def chosen(x, count, y, length, BLOCK: tl.constexpr):
    """Write the values that count."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lane, mask=lane < length, other=0)
    before = tl.load(count + lane, mask=lane < length, other=0) - (values > 0).to(tl.int32)
    tl.store(y + lane, tl.where(before % 2 == 1, values, 0), mask=lane < length)


def prefix_sum(x):
    """Sum, up to each place, the elements before which an odd number of elements is positive."""
    n = x.numel()
    grid = (triton.cdiv(n, 4096),)
    positive = torch.empty(n, dtype=torch.int8, device=x.device)
    signs[grid](x, positive, n, BLOCK=4096, num_warps=8)
    count = torch.cumsum(positive, 0, dtype=torch.int32)
    y = torch.empty_like(x)
    chosen[grid](x, count, y, n, BLOCK=4096, num_warps=8)
    return torch.cumsum(y, 0, dtype=torch.int32)
'''
HISTOGRAM = CUMSUM.replace("tl.sum(p, 0) % 2", "tl.sum(tl.histogram(p, 2) * tl.arange(0, 2), 0) % 2")


def variants() -> dict[str, str]:
    """Return the source of each variant by its name."""
    return {
        "split_join": reference(load=SPLIT_LOAD, store=JOIN_STORE),
        "split_load": reference(load=SPLIT_LOAD),
        "join_store": reference(store=JOIN_STORE),
        "strided_store": reference(store=STRIDED_STORE),
        "trans_quarters": reference(load=CACHED_TRANS),
        "reshape_split": reference(load=RESHAPE_SPLIT),
        "reference_1_warp": reference(rows=64, warps=1),
        "reference_16_warps": reference(rows=512, warps=16),
        "reference_large_tile": reference(rows=1024, warps=4),
        "reference_small_tile": reference(rows=32, warps=1),
        "reference_idle_warps": reference(rows=32, warps=8),
        "serial_joined": serial("flat"),
        "serial_cube": serial("cube"),
        "serial_strided": serial("strided"),
        "cumsum": single_pass(FLAT, CUMSUM, CUMSUM_AFTER),
        "cumsum_8_warps": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=4096, warps=8),
        "cumsum_1_warp": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=1024, warps=1),
        "cumsum_tiny": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=256, warps=4),
        "cumsum_32_warps": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=32768, warps=32),
        "cumsum_spills": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=32768, warps=4),
        "cumsum_int64": single_pass(FLAT, WIDE, WIDE_AFTER, block=4096, warps=8),
        "packed": single_pass(FLAT, PACKED, CUMSUM_AFTER, block=4096, warps=8),
        "tuple": single_pass(FLAT, TUPLE, TUPLE_AFTER, block=4096, warps=8),
        "tuple_fours": three_kernels(FLAT, TUPLE, TUPLE_AFTER, block=4096, warps=4),
        "rows": single_pass(ROWS_OF_32, ROWS2, ROWS2_AFTER),
        "rows_of_4": single_pass(FOURS, ROWS2, ROWS2_AFTER),
        "dot": single_pass(ROWS_OF_32, DOT, ROWS2_AFTER),
        "gather": single_pass(FLAT, BY_GATHER, CUMSUM_AFTER, block=2048),
        "halves": single_pass(FLAT, BY_HALVES, CUMSUM_AFTER, block=1024),
        "reversed": single_pass(REVERSED, REVERSED_SCAN, REVERSED_AFTER, block=4096, warps=8),
        "transposed": single_pass(TRANSPOSED, CUMSUM, CUMSUM_AFTER, block=4096, warps=8),
        "columns_store": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, COLUMNS_STORE, block=4096, warps=8),
        "reload": single_pass(FLAT, CUMSUM, RELOAD_AFTER, block=4096, warps=8),
        "reload_uncached": single_pass(FLAT, CUMSUM, UNCACHED_AFTER, block=4096, warps=8),
        "block_pointer": single_pass(POINTER, CUMSUM, CUMSUM_AFTER, block=4096, warps=8),
        "interleaved_masks": single_pass(
            INTERLEAVED_MASKS, CUMSUM, CUMSUM_AFTER, INTERLEAVED_STORE, block=4096, warps=8
        ),
        "stored_twice": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, TWICE_STORE, block=4096, warps=8),
        "chain": chain(loads_first=True),
        "chain_before_loads": chain(loads_first=False),
        "three": three_kernels(FLAT, CUMSUM, CUMSUM_AFTER, block=4096),
        "three_small": three_kernels(FLAT, CUMSUM, CUMSUM_AFTER, block=1024, warps=4),
        "three_persistent": three_kernels(FLAT, CUMSUM, CUMSUM_AFTER, block=4096, programs=528),
        "three_few": three_kernels(FLAT, CUMSUM, CUMSUM_AFTER, block=4096, programs=132),
        "three_rows": three_kernels(ROWS_OF_32, ROWS2, ROWS2_AFTER, block=4096, programs=1056),
        "histogram": three_kernels(FLAT, HISTOGRAM, CUMSUM_AFTER, block=4096),
        "torch_int32": TORCH_INT32,
        "int8_parities": INT8_PARITIES,
    } | held_out()


def held_out() -> dict[str, str]:
    """Return those that were written after the rules of the model, to find one that it takes for too fast."""
    xor = "@triton.jit\ndef xor(a, b):\n    return a ^ b\n\n\n"
    return {
        "cumsum_128_a_thread": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=16384),
        "cumsum_2_warps": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=4096, warps=2),
        "cumsum_16_warps": single_pass(FLAT, CUMSUM, CUMSUM_AFTER, block=16384, warps=16),
        "rows_of_4_few": single_pass(FOURS, ROWS2, ROWS2_AFTER, block=1024),
        "rows_of_8_few": single_pass(EIGHTS, ROWS2, ROWS2_AFTER, block=2048, warps=8),
        "three_rows_of_4": three_kernels(FOURS, ROWS2, ROWS2_AFTER, block=1024, warps=4),
        "serial_16384": serial("flat", block=16384),
        "reference_1024_rows": reference(rows=1024, warps=16),
        "reference_window_256": reference().replace("WINDOW = 128", "WINDOW = 256"),
        "reference_2_warps": reference(rows=128, warps=2),
        "xor_scan": single_pass(FLAT, XOR_SCAN, CUMSUM_AFTER).replace("@triton.jit", xor + "@triton.jit", 1),
        "chain_of_atomics": chain(loads_first=True, carry=CHAIN_OF_ATOMICS),
    }


def write(directory: Path) -> dict[str, Path]:
    """Write the variants, and the solutions that lie in this task, as folders of ``directory``; return these."""
    own = [*OWN, *(str(path.relative_to(TASK)) for path in sorted((TASK / "tools" / "implementations").iterdir()))]
    sources = {Path(name).name: (TASK / name / "solution.py").read_text(encoding="utf-8") for name in own} | variants()
    for name, source in sources.items():
        (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / name / "solution.py").write_text(source, encoding="utf-8")
    return {name: directory / name for name in sources}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the variants as solutions.")
    parser.add_argument("directory", type=Path)
    write(parser.parse_args().directory)
