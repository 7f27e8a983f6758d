"""Harness of profile ``gpu``: runs ``prefix_sum`` functions on the GPU, in a process that nobody trusts.

``load({"solutions": {name: directory}})`` imports each ``solution.py``; ``check({"name"}, [x], [y])`` computes one
input that lies in the host's memory; ``attach_arena({}, [], [arena])`` has torch take its memory from there;
``wake({})`` comes just before ``turn({"name", "calls", "length", "stride", "nonce"}, [inputs], [arena])``, a timed
turn. Exceptions carry the reason of an invalid score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from re_bench.guest.refused import RefusedError
from triton_cumsum.harness import submission
from triton_cumsum.harness.arena import Arena

_functions: dict[str, Any] = {}
_kept: list[Any] = []
_arenas: list[Arena] = []
_inputs_seen: dict[tuple[int, ...], list[Any]] = {}


class _Slice:
    """Part of a mapping as a memory of its own, so that a tensor's storage is its own input and no more."""

    def __init__(self, mapping: Any, offset: int, length: int) -> None:
        self._mapping = mapping
        address = mapping.__cuda_array_interface__["data"][0] + offset
        self.__cuda_array_interface__ = {"shape": (length,), "typestr": "<i4", "data": (address, False), "version": 3}


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


def attach_arena(_args: dict[str, Any], _inputs: list[Any], outputs: list[Any]) -> None:
    """Have torch take the memory of results from the arena from now on."""
    _arenas[:] = [Arena(outputs[0])]


def wake(_args: dict[str, Any], _inputs: list[Any], _outputs: list[Any]) -> None:
    """Do a little work, so that this process and its share of the GPU are awake when a turn begins."""
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()


def turn(args: dict[str, Any], inputs: list[Any], _outputs: list[Any]) -> dict[str, Any]:
    """Call a function once on each of the inputs and return where in the arena the results lie, in bytes.

    ``events_s`` is the time of all calls by CUDA events.
    """
    _kept.clear()
    arena, function = _arenas[0], _functions[args["name"]]
    xs = _slices(args, inputs[0])
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with arena.in_use():
        start.record()
        results = [submission.call(function, x) for x in xs]
        stop.record()
        for x, result in zip(xs, results, strict=True):
            submission.check_result(x, result)
        # A result from elsewhere, another thread's say, costs a copy.
        results = [result if arena.offset(result) is not None else result.clone() for result in results]
    submission.call(lambda _: torch.cuda.synchronize(), None)  # what fails on the GPU shows here
    _kept.extend(results)
    offsets = [arena.offset(result) for result in results]
    return {"nonce": args["nonce"], "offsets": offsets, "events_s": start.elapsed_time(stop) / 1e3}


def _slices(args: dict[str, Any], mapping: Any) -> list[Any]:
    """Return the inputs of a turn as tensors, made once."""
    key = (args["calls"], args["length"], args["stride"])
    if key not in _inputs_seen:
        slices = [_Slice(mapping, call * 4 * args["stride"], args["length"]) for call in range(args["calls"])]
        _inputs_seen[key] = [torch.as_tensor(part, device="cuda") for part in slices]
    return _inputs_seen[key]
