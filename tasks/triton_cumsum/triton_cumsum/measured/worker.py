"""A sandboxed runner as the scorer sees it: the process, and the GPU memory shared with it."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import torch

from re_bench.errors import InvalidSubmissionError
from triton_cumsum.measured.turn_times import Turn, claimed_seconds
from triton_cumsum.measured.verifier import POISON, as_int32, parse_offsets
from triton_cumsum.profiles import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench.guest.device_memory import DeviceMemory
    from re_bench.sandbox.untrusted import Untrusted
    from triton_cumsum.measured.verifier import Verifier


class Worker:
    """A runner with the memory it shares with the scorer.

    Args:
        process: a sandboxed process with the harness ``gpu_runner``.
        inputs: the memory that it sees its inputs in; not another's, who could write to it.
        arena: the memory that its results will lie in.
        verifier: makes its inputs and checks its results.
    """

    def __init__(self, process: Untrusted, inputs: DeviceMemory, arena: DeviceMemory, verifier: Verifier) -> None:
        self.process, self.inputs, self.arena, self.verifier = process, inputs, arena, verifier
        self.shown = as_int32(inputs).reshape(-1, verifier.stride)
        self.results = as_int32(arena)
        self.results.fill_(POISON)
        torch.cuda.synchronize()
        process.call("attach_arena", device_outputs=[arena])

    def load(self, solutions: Mapping[str, Path]) -> None:
        """Have the runner import solutions, by name."""
        self.process.call("load", {"solutions": {name: str(path) for name, path in solutions.items()}})

    def turn(self, name: str, calls: int, length: int) -> Turn:
        """Return the time of one turn of the solution ``name``, all of whose results are exact.

        Raises:
            InvalidSubmissionError: if one is not, or was not there when the runner said so.
        """
        nonce = secrets.token_hex()
        args = {"name": name, "calls": calls, "length": length, "stride": self.verifier.stride, "nonce": nonce}
        shared: dict[str, Any] = {"device_inputs": [self.inputs], "device_outputs": [self.arena]}
        self.verifier.prepare(self.shown, calls, length)
        self.process.call("wake", timeout_s=GPU.call_s)
        started = time.perf_counter()
        self.verifier.reveal(self.shown)
        value = self.process.call("turn", args, **shared, timeout_s=GPU.call_s * calls).value
        offsets = parse_offsets(value, nonce, calls, length, self.arena.nbytes)
        complete = self.verifier.probe(self.results, offsets)
        seconds = time.perf_counter() - started
        self.verifier.check(self.results, offsets, length)
        if not complete:
            raise InvalidSubmissionError("a result was not complete when the submission's process said so")
        for offset in offsets:  # the runner takes this memory for the next turn's results
            self.results[offset // 4 : offset // 4 + length].fill_(POISON)
        return Turn(seconds, claimed_seconds(value.get("events_s")))
