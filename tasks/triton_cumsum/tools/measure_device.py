"""Measure the constants of the time model on the GPU at hand.

Run it alone on an idle machine, ``python measure_device.py``; it needs only torch and Triton. It prints one JSON
object; the keys that follow are fields of :class:`triton_cumsum.modelled.cost.Device`, the rest is under ``other``:

- ``rates`` and ``program``: what the whole device, or a single program, does in a second;
- ``scan_bandwidth``: bytes per second of ``torch.cumsum`` of 10^8 int64 (bytes read plus written);
- ``launch_s``: seconds for each of a chain of dependent one-element kernels in a CUDA graph;
- ``host_launch_s`` and ``host_operator_s``: seconds for each of such a chain launched from Python, kernels of Triton
  and operators of torch.

The kernels copy an array and do more work on each block, in rounds. Each round of a kind does a known amount of one
kind of work, as :mod:`triton_cumsum.harness.work_counter` counts it, on each element, so the time of more rounds less
that of fewer gives its rate, free of what the copy itself takes.
"""

# ruff: noqa: ANN001, ANN201, N803, PLR0917 - a kernel takes what it needs; Triton allows no other annotations

from __future__ import annotations

import itertools
import json
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTS = 100_000_000
FEW = 1_048_576
"""Elements that the single program copies."""
CHAIN = 1000
SHAPES = ((4096, 4), (8192, 8))
"""Elements of a block, and warps, of programs that fill the device; the better of the two counts."""
PROGRAM = (16384, 4)
"""The same for the single program: Triton takes four warps unless it is told otherwise."""


@dataclass(frozen=True)
class Kind:
    """A kind of work: its ``number`` in the kernel, and the words of it that one round has for each element.

    The rate is taken between the first two of the rounds, the third shows whether the time is a line. On the whole
    device the copy hides the first few rounds, so there the rounds are ``many``, and ``few`` in a single program.
    ``waits`` says that a round waits once.
    """

    number: int
    words: int
    many: tuple[int, int, int]
    few: tuple[int, int, int]
    waits: bool


KINDS = {
    "scanned": Kind(1, 1, (8, 16, 0), (0, 2, 4), waits=True),
    "reduced": Kind(2, 1, (32, 64, 0), (0, 2, 4), waits=True),
    "exchanged": Kind(3, 3, (8, 16, 0), (0, 2, 4), waits=False),
    "operations": Kind(4, 4, (16, 32, 0), (16, 32, 0), waits=False),
}


@triton.jit  # type: ignore[untyped-decorator] # triton is not followed by the type checker
def worked(values, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return the values after some rounds of one kind of work; each needs the result of the one before."""
    for _ in tl.static_range(ROUNDS):
        if KIND == 1:
            values = tl.cumsum(values, 0)
        elif KIND == 2:  # noqa: PLR2004 - the numbers of KINDS
            values = values ^ tl.sum(values, 0)
        elif KIND == 3:  # noqa: PLR2004
            # Two changes of shape and one of order; added, so that the result has to be where the values are.
            values += tl.reshape(tl.trans(tl.reshape(values, (BLOCK // 32, 32))), (BLOCK,))
        else:
            values ^= values << 5
            values = (values >> 3) + 12345
    return values


@triton.jit  # type: ignore[untyped-decorator]
def copy_in_many(source, target, length, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Work on one block in each program."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + lane, mask=lane < length, other=0)
    tl.store(target + lane, worked(values, KIND, ROUNDS, BLOCK), mask=lane < length)


@triton.jit  # type: ignore[untyped-decorator]
def copy_in_one(source, target, length, KIND: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Work on all blocks in one program, one after the other; each needs the last value of the one before."""
    lane = tl.arange(0, BLOCK)
    for start in range(0, length, BLOCK):
        inside = start + lane < length
        values = tl.load(source + start + lane, mask=inside, other=0)
        tl.store(target + start + lane, worked(values, KIND, ROUNDS, BLOCK), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def write_pieces(target, PIECE: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write a block in rows of ``ROW`` elements, by one store for each ``PIECE`` of all rows."""
    row = tl.arange(0, BLOCK // ROW)[:, None]
    place = tl.program_id(0) * BLOCK + ROW * row + tl.arange(0, PIECE)[None, :]
    for piece in tl.static_range(ROW // PIECE):
        tl.store(target + place + PIECE * piece, row + place)


@triton.jit  # type: ignore[untyped-decorator]
def read_pieces(source, target, PIECE: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr, TIMES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Read a block as :func:`write_pieces` writes it, ``TIMES`` times, and keep one sum of each row."""
    row = tl.arange(0, BLOCK // ROW)
    place = tl.program_id(0) * BLOCK + ROW * row[:, None] + tl.arange(0, PIECE)[None, :]
    total = tl.zeros((BLOCK // ROW, PIECE), tl.int32)
    for _ in tl.range(TIMES):
        for piece in tl.static_range(ROW // PIECE):
            total ^= tl.load(source + place + PIECE * piece) + total
        tl.debug_barrier()
    tl.store(target + tl.program_id(0) * (BLOCK // ROW) + row, tl.sum(total, 1))


@triton.jit  # type: ignore[untyped-decorator]
def add_atomically(target, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Add one to each element of a block."""
    tl.atomic_add(target + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1, sem="relaxed")


@triton.jit
def increment(target):  # type: ignore[no-untyped-def]
    """Add one to the first element: a kernel that does next to nothing."""
    tl.store(target, tl.load(target) + 1)


def launch_many(x: Any, y: Any, grid: int, block: int, warps: int, number: int, rounds: int) -> None:
    """Run :func:`copy_in_many` on all of ``x``."""
    number = number if rounds else 0  # a plain copy is compiled once
    copy_in_many[(grid,)](x, y, x.numel(), KIND=number, ROUNDS=rounds, BLOCK=block, num_warps=warps)


def launch_one(x: Any, y: Any, block: int, warps: int, number: int, rounds: int) -> None:
    """Run :func:`copy_in_one` on the first :data:`FEW` elements of ``x``."""
    length, number = min(FEW, x.numel()), number if rounds else 0
    copy_in_one[(1,)](x, y, length, KIND=number, ROUNDS=rounds, BLOCK=block, num_warps=warps, num_stages=4)


def milliseconds(work: Callable[[], object], rounds: int = 15) -> float:
    """Return the median time of ``work`` by CUDA events after three warm-up calls."""
    for _ in range(3):
        work()
    times: list[float] = []
    for _ in range(rounds):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        work()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times)


def chain_seconds(kernel: Callable[[], object]) -> float:
    """Return the seconds per kernel of ``CHAIN`` dependent launches replayed from a CUDA graph."""
    kernel()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CHAIN):
            kernel()
    return milliseconds(graph.replay) / 1e3 / CHAIN


def device_rates(x: Any, y: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the rates of the whole device, by what each round of work adds to a kernel's copy of ``x``, and times."""
    rates = {"bytes": 8 * ELEMENTS / milliseconds(lambda: y.copy_(x)) * 1e3}
    times: dict[str, Any] = {}
    for block, warps in SHAPES:
        grid = triton.cdiv(ELEMENTS, block)
        for kind, work in KINDS.items():
            ms = [_many_ms(x, y, grid, block, warps, work.number, rounds) for rounds in work.many]
            times[f"{kind}, {block} elements, {warps} warps, rounds {work.many}, ms"] = ms
            added = work.words * (work.many[1] - work.many[0]) * ELEMENTS
            rates[kind] = max(rates.get(kind, 0.0), added / max(ms[1] - ms[0], 1e-6) * 1e3)
    return rates, times


def program_rates(x: Any, y: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the rates of a single program, by what each round adds to its copy, and the times."""
    few, (block, warps) = FEW, PROGRAM
    copies = {str(shape): _one_ms(x, y, *shape, 0, 0) for shape in ((4096, 8), (16384, 16), (16384, 32))}
    # A block of 128 elements is one element a thread: nearly all is waiting, for one load and two scans.
    small = _one_ms(x, y, 128, warps, KINDS["scanned"].number, 2)
    rates = {"bytes": 8 * few / min(copies.values()) * 1e3, "wait_s": small / 1e3 / 3 / (few / 128)}
    times: dict[str, Any] = {"scanned, 128 elements, rounds 2, ms": small, "copies, ms": copies}
    for kind, work in KINDS.items():
        ms = [_one_ms(x, y, block, warps, work.number, rounds) for rounds in work.few]
        times[f"{kind}, {block} elements, {warps} warps, rounds {work.few}, ms"] = ms
        rounds = work.few[1] - work.few[0]
        waited = rates["wait_s"] * rounds * few / block if work.waits else 0.0
        rates[kind] = work.words * rounds * few / max((ms[1] - ms[0]) / 1e3 - waited, 1e-9)
    return rates, times


def torch_bandwidths(x: Any) -> dict[str, float]:
    """Return the bytes per second, read plus written, of operators of torch on tensors like ``x`` and wider."""
    wide, square = x.to(torch.int64), x.view(10_000, 10_000)
    works: dict[str, tuple[Callable[[], object], int]] = {
        "cumsum of int64": (lambda: torch.cumsum(wide, 0), 16),
        "cumsum of int32 to int32": (lambda: torch.cumsum(x, 0, dtype=torch.int32), 8),
        "cumsum of int32 to int32 along rows": (lambda: torch.cumsum(square, 1, dtype=torch.int32), 8),
        "cumsum of int32 to int32 along columns": (lambda: torch.cumsum(square, 0, dtype=torch.int32), 8),
        "int32 to int64": (lambda: x.to(torch.int64), 12),
        "int32 > 0": (lambda: x > 0, 5),
        "int64 % 2": (lambda: wide % 2, 16),
        "where of int32": (lambda: torch.where(x > 0, x, 0), 14),
        "sum of int32": (x.sum, 4),
    }
    return {name: size * ELEMENTS / milliseconds(work, 5) * 1e3 for name, (work, size) in works.items()}


def access_times(x: Any, y: Any) -> dict[str, float]:
    """Return the milliseconds of ways to read and write about 10^8 elements."""
    block, row, times = 8192, 32, {}
    grid = (ELEMENTS // block,)
    for piece, warps in itertools.product((1, 2, 4, 8, 16, 32), (4, 8)):
        name = f"pieces of {piece}, {warps} warps"
        write = partial(write_pieces[grid], y, PIECE=piece, ROW=row, BLOCK=block, num_warps=warps)
        times[f"write {name}"] = milliseconds(write, 5)
        for often in (1, 5):
            read = partial(read_pieces[grid], x, y, piece, row, block, often, num_warps=warps)
            times[f"read {name}, {often} times"] = milliseconds(read, 5)
    for size, warps in itertools.product((128, 256, 512, 1024, 2048, 4096, 8192), (1, 4, 8, 32)):
        copy = _many_ms(x, y, triton.cdiv(ELEMENTS, size), size, warps, 0, 0)
        times[f"copy, blocks of {size}, {warps} warps"] = copy
    add = partial(add_atomically[(ELEMENTS // 4096,)], y, 4096, num_warps=4)
    times["atomic add, blocks of 4096"] = milliseconds(add, 5)
    return times


def measure() -> dict[str, object]:
    """Measure the constants on the current device and return them with their circumstances."""
    x = torch.randint(-10, 10, (ELEMENTS,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    rates, times = device_rates(x, y)
    program, program_times = program_rates(x, y)
    bandwidths = torch_bandwidths(x)
    one = torch.zeros(1, dtype=torch.int32, device="cuda")
    launch = increment[(1,)]
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "rates": rates,
        "program": program,
        "scan_bandwidth": bandwidths["cumsum of int64"],
        "launch_s": chain_seconds(lambda: launch(one)),
        "host_launch_s": milliseconds(lambda: [launch(one) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "host_operator_s": milliseconds(lambda: [one.add_(1) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "other": {
            "multiprocessors": properties.multi_processor_count,
            "launch_s_torch": chain_seconds(lambda: one.add_(1)),
            "bandwidths": bandwidths,
            "accesses, ms": access_times(x, y),
            "device": times,
            "program": program_times,
            "versions": {"torch": torch.__version__, "triton": triton.__version__},
        },
    }


def _many_ms(*arguments: Any) -> float:
    return milliseconds(lambda: launch_many(*arguments), 5)


def _one_ms(*arguments: Any) -> float:
    return milliseconds(lambda: launch_one(*arguments), 5)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
