"""Measure the constants of the time model on the GPU at hand.

Run it alone on an idle machine, ``python measure_device.py``; it needs only torch and Triton. It prints one JSON
object; the keys that follow are fields of :class:`cost.Device`, the rest is under ``other``:

- ``rates`` and ``program``: what the whole device, or a single program, does in a second; see :mod:`measure_kernels`;
- ``scan_bandwidth``: bytes per second of ``torch.cumsum`` of 10^8 int64 (bytes read plus written);
- ``launch_s``: seconds for each of a chain of dependent one-element kernels in a CUDA graph;
- ``host_launch_s`` and ``host_operator_s``: seconds for each of such a chain launched from Python, kernels of Triton
  and operators of torch.
"""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

import measure_kernels
import torch
import triton

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTS = 100_000_000
CHAIN = 1000
SHAPES = ((4096, 4), (8192, 8))
"""Elements of a block, and warps, of programs that fill the device; the better of the two counts."""
PROGRAM = (16384, 4)
"""The same for the single program: Triton takes four warps unless it is told otherwise."""


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
        for kind, work in measure_kernels.KINDS.items():
            ms = [_many_ms(x, y, grid, block, warps, work.number, rounds) for rounds in work.many]
            times[f"{kind}, {block} elements, {warps} warps, rounds {work.many}, ms"] = ms
            added = work.words * (work.many[1] - work.many[0]) * ELEMENTS
            rates[kind] = max(rates.get(kind, 0.0), added / max(ms[1] - ms[0], 1e-6) * 1e3)
    return rates, times


def program_rates(x: Any, y: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the rates of a single program, by what each round adds to its copy, and the times."""
    few, (block, warps) = measure_kernels.FEW, PROGRAM
    copies = {str(shape): _one_ms(x, y, *shape, 0, 0) for shape in ((4096, 8), (16384, 16), (16384, 32))}
    # A block of 128 elements is one element a thread: nearly all is waiting, for one load and two scans.
    small = _one_ms(x, y, 128, warps, measure_kernels.KINDS["scanned"].number, 2)
    rates = {"bytes": 8 * few / min(copies.values()) * 1e3, "wait_s": small / 1e3 / 3 / (few / 128)}
    times: dict[str, Any] = {"scanned, 128 elements, rounds 2, ms": small, "copies, ms": copies}
    for kind, work in measure_kernels.KINDS.items():
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


def measure() -> dict[str, object]:
    """Measure the constants on the current device and return them with their circumstances."""
    x = torch.randint(-10, 10, (ELEMENTS,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    rates, times = device_rates(x, y)
    program, program_times = program_rates(x, y)
    bandwidths = torch_bandwidths(x)
    one = torch.zeros(1, dtype=torch.int32, device="cuda")
    increment = measure_kernels.increment[(1,)]
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "rates": rates,
        "program": program,
        "scan_bandwidth": bandwidths["cumsum of int64"],
        "launch_s": chain_seconds(lambda: increment(one)),
        "host_launch_s": milliseconds(lambda: [increment(one) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "host_operator_s": milliseconds(lambda: [one.add_(1) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "other": {
            "launch_s_torch": chain_seconds(lambda: one.add_(1)),
            "bandwidths": bandwidths,
            "device": times,
            "program": program_times,
            "versions": {"torch": torch.__version__, "triton": triton.__version__},
        },
    }


def _many_ms(*arguments: Any) -> float:
    return milliseconds(lambda: measure_kernels.many(*arguments), 5)


def _one_ms(*arguments: Any) -> float:
    return milliseconds(lambda: measure_kernels.one(*arguments), 5)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
