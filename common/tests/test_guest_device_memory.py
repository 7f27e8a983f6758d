"""Memory of the GPU crosses into a sandbox without a copy; where there is no GPU, it says so."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from re_bench.gpu import state as gpu_state
from re_bench.guest import worker
from re_bench.guest.device_memory import DeviceMemory, DeviceMemoryError
from re_bench.limits import Limits
from re_bench.sandbox.spec import SandboxSpec
from re_bench.sandbox.untrusted import SubmissionFaultError, Untrusted

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend

GPU = any(Path("/dev").glob("nvidia[0-9]*"))
LIMITS = Limits(wall_s=100, memory_mib=32768, processes=1024)
HARNESS = """
import torch

def add(args, inputs, outputs):
    x, y = (torch.as_tensor(memory, device="cuda").view(torch.int32) for memory in (inputs[0], outputs[0]))
    torch.add(x, args["more"], out=y)
    torch.cuda.synchronize()
    return [len(inputs), len(outputs)]

def overwrite(args, inputs, outputs):
    torch.as_tensor(inputs[0], device="cuda").add_(1)
    torch.cuda.synchronize()
"""


def spec() -> SandboxSpec:
    return SandboxSpec(gpu=gpu_state.identify().uuid, limits=LIMITS)


@pytest.mark.skipif(GPU, reason="this machine has a GPU; the other tests show that it works")
def test_without_a_driver_there_is_a_reason() -> None:
    with pytest.raises(DeviceMemoryError, match=r"no CUDA driver|does not start"):
        DeviceMemory(1)


def test_a_harness_may_get_a_descriptor_to_map_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "memory"
    file.write_text("memory")
    descriptor = os.open(file, os.O_RDONLY)
    request = {"call": "look", "args": {}, "inputs": 0}
    request["device"] = [{"name": "r", "nbytes": 5, "size": 6, "writable": False, "mapped": False}]
    harness = ModuleType("harness")
    harness.look = lambda _args, inputs, _outputs: [inputs, os.read(inputs[0]["descriptor"], 9).decode()]  # type: ignore[attr-defined]
    reply = worker.answer(harness, request, [descriptor])
    assert reply == {"value": [[{"descriptor": descriptor, "nbytes": 5, "size": 6}], "memory"]}
    os.close(descriptor)


@pytest.mark.skipif(not GPU, reason="needs a GPU; run by hand, see docs/sandboxes.md")
def test_tensors_are_shared_and_calls_repeat(backend: Backend, harness: Callable[[str], Path]) -> None:
    import torch  # noqa: PLC0415 - not in every environment of these tests

    with DeviceMemory(4_000_000) as given, DeviceMemory(4_000_000) as wanted:
        x, y = (torch.as_tensor(memory, device="cuda").view(torch.int32) for memory in (given, wanted))
        x.copy_(torch.arange(1_000_000))
        torch.cuda.synchronize()
        with Untrusted(backend, harness(HARNESS), spec()) as process:
            for more in (1, 2, 3):
                reply = process.call("add", {"more": more}, device_inputs=[given], device_outputs=[wanted])
                assert reply.value == [1, 1]
                assert torch.equal(y, x + more)


@pytest.mark.skipif(not GPU, reason="needs a GPU; run by hand, see docs/sandboxes.md")
def test_an_honest_slip_cannot_overwrite_an_input(backend: Backend, harness: Callable[[str], Path]) -> None:
    import torch  # noqa: PLC0415 - as above

    with DeviceMemory(4_000_000) as given:
        x = torch.as_tensor(given, device="cuda").view(torch.int32)
        x.fill_(7)
        torch.cuda.synchronize()
        with Untrusted(backend, harness(HARNESS), spec()) as process, pytest.raises(SubmissionFaultError):
            process.call("overwrite", device_inputs=[given])
        assert torch.all(x == 7)
