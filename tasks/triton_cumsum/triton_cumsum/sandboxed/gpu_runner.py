"""Profile ``gpu``: runs ``prefix_sum`` functions on the GPU, in a process that nobody trusts.

:func:`start` and :func:`load` import; :func:`check` computes one input that lies in the host's memory; :func:`attach`
has torch take its memory from the arena, and reserves addresses for inputs; :func:`wake` comes just before
:func:`turn`, a timed turn; :func:`settle` waits for the end of all its work, and :func:`release` lets go of inputs and
results. :func:`profile` tells of the kernels of one call.

A turn's inputs are memory that was never seen before, and is mapped when the clock already runs: one row of ``stride``
elements for each call, in which the input begins somewhere, elsewhere in each turn. All else that the host does during
a turn, it does while the GPU works: ``turn`` answers when all calls have been made, and that their results are there is
said by the stream, which then writes ``signal`` to the word.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from re_bench.errors import InvalidSubmissionError
from re_bench.guest.device_memory import AddressRange, SharedMapping, write_value
from re_bench.guest.signature import MemoryHandle

_functions: dict[str, Any] = {}
_kept: list[Any] = []
_arenas: list[Any] = []
_windows: list[AddressRange] = []
_words: list[int] = []
_events: list[Any] = []


@dataclass(frozen=True)
class Placed:
    """What a turn answers: where in the arena the results will lie, in bytes."""

    nonce: str
    """As it was asked, so that no answer can be sent before."""
    offsets: list[int | None]


@dataclass(frozen=True)
class Kernel:
    """What CUPTI says of a kernel, copy or fill: its name, how often it ran, and for how long."""

    name: str
    launches: int
    us: float


class _Slice:
    """Part of the inputs as a memory of its own, so that a tensor's storage is its own input and no more."""

    def __init__(self, address: int, length: int) -> None:
        self.__cuda_array_interface__ = {"shape": (length,), "typestr": "<i4", "data": (address, False), "version": 3}


@contextmanager
def _submissions_work() -> Iterator[None]:
    """Have a fault of the GPU, which may show at any call of the driver, be said to be one of the submission's work."""
    from triton_cumsum.sandboxed import submission  # noqa: PLC0415 - imports torch, which the scorer may do without

    try:
        yield
    except InvalidSubmissionError:
        raise
    except Exception as error:
        raise InvalidSubmissionError(
            f"the submission's work on the GPU failed: {submission.describe(error)}"
        ) from error


def start() -> None:
    """Import torch and Triton, which takes a while."""
    import triton  # noqa: PLC0415, F401

    from triton_cumsum.sandboxed import arena, submission  # noqa: PLC0415, F401


def load(solutions: dict[str, Path]) -> None:
    """Import the ``solution.py`` of each directory, and keep their functions by name."""
    from triton_cumsum.sandboxed import submission  # noqa: PLC0415

    for name, directory in solutions.items():
        _functions[name] = submission.load(directory, name)


def check(name: str, values: Annotated[NDArray[np.int32], "length"]) -> Annotated[NDArray[np.int32], "length"]:
    """Compute one input that lies in the host's memory."""
    import torch  # noqa: PLC0415

    from triton_cumsum.sandboxed import submission  # noqa: PLC0415

    x = torch.from_numpy(values.copy()).cuda()
    result = submission.call(_functions[name], x)
    submission.check_result(x, result)
    if not np.array_equal(x.cpu().numpy(), values):
        raise InvalidSubmissionError("prefix_sum changed its input x; leave it as it is")
    computed: NDArray[np.int32] = result.cpu().numpy()
    return computed


def attach(
    inputs: int, arena: Annotated[SharedMapping, "writable"], word: Annotated[SharedMapping, "writable"]
) -> None:
    """Have torch take the memory of results from the arena from now on, and make room for so many bytes of inputs."""
    import torch  # noqa: PLC0415

    from triton_cumsum.sandboxed.arena import Arena  # noqa: PLC0415

    _arenas[:] = [Arena(arena)]
    _words[:] = [word.__cuda_array_interface__["data"][0]]
    _windows[:] = [AddressRange(inputs)]
    _events[:] = [torch.cuda.Event(enable_timing=True) for _ in range(2)]


@_submissions_work()
def wake() -> None:
    """Do a little work, so that this process and its share of the GPU are awake when a turn begins."""
    import torch  # noqa: PLC0415

    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()


@_submissions_work()
def turn(  # noqa: PLR0917 - what a turn is made of
    name: str, starts: list[int], length: int, stride: int, nonce: str, signal: int, inputs: MemoryHandle
) -> Placed:
    """Call a function once on each of the inputs, which begin at ``starts`` in their rows."""
    import torch  # noqa: PLC0415

    from triton_cumsum.sandboxed import submission  # noqa: PLC0415

    window, arena, function, (begin, end) = _windows[0], _arenas[0], _functions[name], _events
    xs: list[Any] = []
    results: list[Any] = []
    window.map_descriptor(inputs.descriptor, inputs.size)
    window.allow(0, inputs.size, writable=False)  # the driver refuses to do this for a part
    with arena.in_use():
        for call, place in enumerate(starts):
            xs.append(_tensor(window.start + 4 * (call * stride + place), length))
            if not call:
                begin.record()
            results.append(submission.call(function, xs[-1]))
        end.record()
        for x, result in zip(xs, results, strict=True):
            submission.check_result(x, result)
        # A result from elsewhere, another thread's say, costs a copy.
        results = [result if arena.offset(result) is not None else result.clone() for result in results]
    _kept.extend([*results, inputs.descriptor])
    write_value(torch.cuda.current_stream().cuda_stream, _words[0], signal)
    return Placed(nonce, [arena.offset(result) for result in results])


def settle() -> float:
    """Wait until the work of a turn is done, on all streams, and return the seconds of its calls by CUDA events."""
    import torch  # noqa: PLC0415

    from triton_cumsum.sandboxed import submission  # noqa: PLC0415

    submission.call(lambda _: torch.cuda.synchronize(), None)  # what fails on the GPU shows here
    begin, end = _events
    seconds: float = begin.elapsed_time(end) / 1e3
    return seconds


@_submissions_work()
def release() -> None:
    """Let go of the memory of a turn's inputs, and of its results."""
    import torch  # noqa: PLC0415

    if _kept:
        os.close(_kept.pop())
    _kept.clear()
    torch.cuda.synchronize()
    _windows[0].unmap()


def profile(name: str, length: int) -> list[Kernel]:
    """Return what CUPTI records of one call."""
    import torch  # noqa: PLC0415

    from triton_cumsum.sandboxed import submission  # noqa: PLC0415

    with _arenas[0].in_use():
        x = torch.randint(-10, 10, (length,), dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            submission.call(_functions[name], x)
            torch.cuda.synchronize()
    work = [event for event in profiler.key_averages() if event.device_time_total]
    return [Kernel(event.key, event.count, event.device_time_total) for event in work]


def _tensor(address: int, length: int) -> Any:
    """Return an input as a tensor, which the caller holds no longer than the turn."""
    import torch  # noqa: PLC0415

    return torch.as_tensor(_Slice(address, length), device="cuda")
