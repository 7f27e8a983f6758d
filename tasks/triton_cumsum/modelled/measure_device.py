"""Measure the constants of the time model on the GPU at hand.

Run it alone on an idle machine, ``python measure_device.py``; it needs only torch and
Triton. It prints one JSON object; the keys that follow are fields of :class:`cost.Device`, the rest is under ``other``:

- ``bandwidth``: bytes per second of a device copy of 10^8 int32 (bytes read plus written);
- ``program_bandwidth``: the same for a copy made by a single Triton program, which runs on
  one multiprocessor and so bounds any kernel with too few programs;
- ``launch_s``: seconds for each of a chain of dependent one-element kernels in a CUDA graph;
- ``host_launch_s`` and ``host_operator_s``: seconds for each of such a chain launched from Python, kernels of Triton
  and operators of torch.
"""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTS = 100_000_000
CHAIN = 1000


@triton.jit  # type: ignore[untyped-decorator] # triton is not followed by the type checker
def copy_by_one_program(source, target, length, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Copy ``length`` elements with one program that loops over blocks."""
    lane = tl.arange(0, BLOCK)
    for start in range(0, length, BLOCK):
        inside = start + lane < length
        tl.store(target + start + lane, tl.load(source + start + lane, mask=inside), mask=inside)


@triton.jit
def increment(target):  # type: ignore[no-untyped-def]
    """Add one to the first element: a kernel that does next to nothing."""
    tl.store(target, tl.load(target) + 1)


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


def measure() -> dict[str, object]:
    """Measure the constants on the current device and return them with their circumstances."""
    x = torch.randint(-10, 10, (ELEMENTS,), dtype=torch.int32, device="cuda")
    y = torch.empty_like(x)
    copy_ms = milliseconds(lambda: y.copy_(x))
    few = ELEMENTS // 50

    def copy_few(block: int, warps: int) -> float:
        launch = copy_by_one_program[(1,)]
        return milliseconds(lambda: launch(x, y, few, BLOCK=block, num_warps=warps, num_stages=4))

    program = [copy_few(block, warps) for block, warps in ((4096, 8), (16384, 16), (16384, 32))]
    one = torch.zeros(1, dtype=torch.int32, device="cuda")
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "bandwidth": 8 * ELEMENTS / copy_ms * 1e3,
        "program_bandwidth": 8 * few / min(program) * 1e3,
        "launch_s": chain_seconds(lambda: increment[(1,)](one)),
        "host_launch_s": milliseconds(lambda: [increment[(1,)](one) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "host_operator_s": milliseconds(lambda: [one.add_(1) for _ in range(CHAIN)], 5) / 1e3 / CHAIN,
        "other": {
            "launch_s_torch": chain_seconds(lambda: one.add_(1)),
            "versions": {"torch": torch.__version__, "triton": triton.__version__},
        },
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
