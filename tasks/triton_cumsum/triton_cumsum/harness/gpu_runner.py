"""Harness of profile ``gpu``: runs ``prefix_sum`` functions on the GPU, in a process that nobody trusts.

``load({"solutions": {name: directory}})`` imports each ``solution.py``; ``check({"name"}, [x], [y])`` computes one
input that lies in the host's memory; ``attach({"inputs": bytes}, [], [arena, word])`` has torch take its memory from
the arena, and reserves addresses for inputs; ``wake({})`` comes just before ``turn({"name", "calls", "starts",
"length", "stride", "nonce", "signal"}, [inputs])``, a timed turn; ``settle({})`` waits for the end of all its work, and
``release({})`` lets go of inputs and results. Exceptions carry the reason of an invalid score.

A turn's inputs are memory that was never seen before, and is mapped when the clock already runs: one row of ``stride``
elements for each call, in which the input begins somewhere, elsewhere in each turn. All else that the host does during
a turn, it does while the GPU works: ``turn`` answers when all calls have been made, and that their results are there is
said by the stream, which then writes ``signal`` to the word. ``profile({"name", "length"})`` tells of the kernels of
one call.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton  # noqa: F401 - takes a while, which goes by while another scoring has the GPU
from re_bench.guest.refused import RefusedError

from re_bench.guest.device_memory import AddressRange, write_value
from triton_cumsum.harness import submission
from triton_cumsum.harness.arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterator

_functions: dict[str, Any] = {}
_kept: list[Any] = []
_arenas: list[Arena] = []
_windows: list[AddressRange] = []
_words: list[int] = []
_events: list[Any] = []


class _Slice:
    """Part of the inputs as a memory of its own, so that a tensor's storage is its own input and no more."""

    def __init__(self, address: int, length: int) -> None:
        self.__cuda_array_interface__ = {"shape": (length,), "typestr": "<i4", "data": (address, False), "version": 3}


@contextmanager
def _submissions_work() -> Iterator[None]:
    """Have a fault of the GPU, which may show at any call of the driver, be said to be one of the submission's work."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        raise RefusedError(f"the submission's work on the GPU failed: {submission.describe(error)}") from error


def load(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Import the solutions and keep their functions."""
    for name, directory in args["solutions"].items():
        _functions[name] = submission.load(Path(directory), name)


def check(args: dict[str, Any], inputs: list[Any], outputs: list[Any]) -> None:
    """Compute one input that lies in the host's memory."""
    values = np.frombuffer(inputs[0], dtype=np.int32)
    x = torch.from_numpy(values.copy()).cuda()
    result = submission.call(_functions[args["name"]], x)
    submission.check_result(x, result)
    if not np.array_equal(x.cpu().numpy(), values):
        raise RefusedError("prefix_sum changed its input x; leave it as it is")
    np.frombuffer(outputs[0], dtype=np.int32)[:] = result.cpu().numpy()


def attach(args: dict[str, Any], _inputs: list[Any], outputs: list[Any]) -> None:
    """Have torch take the memory of results from the arena from now on, and make room for inputs."""
    _arenas[:] = [Arena(outputs[0])]
    _words[:] = [outputs[1].__cuda_array_interface__["data"][0]]
    _windows[:] = [AddressRange(args["inputs"])]
    _events[:] = [torch.cuda.Event(enable_timing=True) for _ in range(2)]


@_submissions_work()
def wake(_args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Do a little work, so that this process and its share of the GPU are awake when a turn begins."""
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()


@_submissions_work()
def turn(args: dict[str, Any], inputs: list[Any], _outputs: list[Any]) -> dict[str, Any]:
    """Call a function once on each of the inputs and return where in the arena the results will lie, in bytes."""
    window, arena, function, (start, stop) = _windows[0], _arenas[0], _functions[args["name"]], _events
    starts, row = args["starts"], 4 * args["stride"]
    xs: list[Any] = []
    results: list[Any] = []
    window.map_descriptor(inputs[0]["descriptor"], inputs[0]["size"])
    window.allow(0, inputs[0]["size"], writable=False)  # the driver refuses to do this for a part
    with arena.in_use():
        for call, place in enumerate(starts):
            xs.append(_tensor(window.start + call * row + 4 * place, args["length"]))
            if not call:
                start.record()
            results.append(submission.call(function, xs[-1]))
        stop.record()
        for x, result in zip(xs, results, strict=True):
            submission.check_result(x, result)
        # A result from elsewhere, another thread's say, costs a copy.
        results = [result if arena.offset(result) is not None else result.clone() for result in results]
    _kept.extend([*results, inputs[0]["descriptor"]])
    write_value(torch.cuda.current_stream().cuda_stream, _words[0], args["signal"])
    return {"nonce": args["nonce"], "offsets": [arena.offset(result) for result in results]}


def settle(_args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> float:
    """Wait until the work of a turn is done, on all streams, and return the seconds of its calls by CUDA events."""
    submission.call(lambda _: torch.cuda.synchronize(), None)  # what fails on the GPU shows here
    start, stop = _events
    seconds: float = start.elapsed_time(stop) / 1e3
    return seconds


@_submissions_work()
def release(_args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Let go of the memory of a turn's inputs, and of its results."""
    if _kept:
        os.close(_kept.pop())
    _kept.clear()
    torch.cuda.synchronize()
    _windows[0].unmap()


def profile(args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> dict[str, Any]:
    """Return what CUPTI records of one call: the name, launches and microseconds of each kernel, copy and fill."""
    function = _functions[args["name"]]
    with _arenas[0].in_use():
        x = torch.randint(-10, 10, (args["length"],), dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            submission.call(function, x)
            torch.cuda.synchronize()
    work = [event for event in profiler.key_averages() if event.device_time_total]
    return {"kernels": [(event.key, event.count, event.device_time_total) for event in work]}


def _tensor(address: int, length: int) -> Any:
    """Return an input as a tensor, which the caller holds no longer than the turn."""
    return torch.as_tensor(_Slice(address, length), device="cuda")
