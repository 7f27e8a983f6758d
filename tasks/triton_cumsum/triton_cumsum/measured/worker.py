"""A sandboxed runner as the scorer sees it: the process, and the GPU memory shared with it."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

import torch

from re_bench.errors import InvalidSubmissionError
from re_bench.guest.device_memory import DeviceMemory
from triton_cumsum.measured.stopwatch import Stopwatch
from triton_cumsum.measured.turn_times import Turn, claimed_seconds
from triton_cumsum.measured.verifier import POISON, as_int32, draw_starts, parse_offsets
from triton_cumsum.profiles import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench.sandbox.untrusted import Untrusted

    from triton_cumsum.measured.signal import Signal
    from triton_cumsum.measured.verifier import Verifier


class Worker:
    """A runner with the memory that its results lie in.

    Args:
        process: a sandboxed process with the harness ``gpu_runner``.
        arena: the memory that its results will lie in.
        signal: how it says that they are there.
        verifier: makes its inputs and checks its results.
    """

    def __init__(self, process: Untrusted, arena: DeviceMemory, signal: Signal, verifier: Verifier) -> None:
        self.process, self.verifier, self._arena, self._signal = process, verifier, arena, signal
        self.steps: dict[str, float] = {}
        """Seconds that the steps of all turns have taken so far, for the log."""
        self.results = as_int32(arena)
        self.results.fill_(POISON)
        torch.cuda.synchronize()
        room = {"inputs": 4 * verifier.calls * verifier.stride}
        process.call("attach", room, device_outputs=[arena, signal.memory])

    def load(self, solutions: Mapping[str, Path]) -> None:
        """Have the runner import solutions, by name."""
        self.process.call("load", {"solutions": {name: str(path) for name, path in solutions.items()}})

    def turn(self, name: str, calls: int, length: int) -> Turn:
        """Return the time of one turn of the solution ``name``, all of whose results are exact.

        The inputs lie in memory of the GPU that the runner gets when the clock runs, and nobody before it. The clock
        stops when the results have been seen to be there: right after the runner's stream has said so, or else, where
        work went on on another one, after the runner has been asked to wait for all of it.

        Raises:
            InvalidSubmissionError: if a result is not exact, or was not there when the runner said so.
            OutOfDeviceMemoryError: if the GPU has no room for new inputs.
        """
        nonce, stride = secrets.token_hex(), self.verifier.stride
        starts = draw_starts(calls, stride, length)
        layout = {"calls": calls, "starts": starts, "length": length, "stride": stride}
        args = {"name": name, "nonce": nonce, "signal": self._signal.renew(), **layout}
        timeout_s = GPU.call_s * calls
        settle = partial(self.process.call, "settle", timeout_s=timeout_s)
        watch = Stopwatch(self.steps)
        with DeviceMemory(4 * calls * stride) as inputs:
            watch.lap("memory")
            self.verifier.prepare(as_int32(inputs).reshape(calls, stride), starts, length)
            watch.lap("inputs and truth")
            self.process.call("wake", timeout_s=GPU.call_s)
            started = time.perf_counter()
            value = self.process.call("turn", args, device_descriptors=[inputs], timeout_s=timeout_s).value
            offsets = parse_offsets(value, nonce, calls, length, self._arena.nbytes)
            settled, complete = None, self.verifier.probe(self.results, offsets, self._signal)
            if not complete:
                settled, complete = settle(), self.verifier.probe(self.results, offsets)
            seconds = time.perf_counter() - started
            watch.lap("timed")
        watch.lap("memory")
        events = claimed_seconds((settled or settle()).value)
        watch.lap("settled")
        self.verifier.check(self.results, offsets, length)
        if not complete:
            raise InvalidSubmissionError("a result was not complete when the submission's process said so")
        for offset in offsets:  # the runner takes this memory for the next turn's results
            self.results[offset // 4 : offset // 4 + length].fill_(POISON)
        torch.cuda.synchronize()
        watch.lap("check")
        self.process.call("release", timeout_s=GPU.call_s)
        watch.lap("release")
        return Turn(seconds, events)
