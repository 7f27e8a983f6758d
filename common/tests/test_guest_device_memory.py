"""Memory of the GPU crosses into a sandbox without a copy; where there is no GPU, it says so."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from re_bench.gpu import state as gpu_state
from re_bench.guest import device_memory, worker
from re_bench.guest.device_memory import (
    AddressRange,
    DeviceMemory,
    DeviceMemoryError,
    OutOfDeviceMemoryError,
    SharedMapping,
)
from re_bench.guest.signature import MemoryHandle  # noqa: TC001 - the annotations are read at run time
from re_bench.limits import Limits
from re_bench.sandbox.calls import SandboxCrashError, SandboxedProcess
from re_bench.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from re_bench.sandbox.spec import Backend

GPU = any(Path("/dev").glob("nvidia[0-9]*"))
LIMITS = Limits(wall_s=100, memory_mib=32768, processes=1024)
MODULE = """
from typing import Annotated
import torch
from re_bench.guest.device_memory import SharedMapping

def add(given: SharedMapping, wanted: Annotated[SharedMapping, "writable"], more: int) -> None:
    x, y = (torch.as_tensor(memory, device="cuda").view(torch.int32) for memory in (given, wanted))
    torch.add(x, more, out=y)
    torch.cuda.synchronize()

def overwrite(given: SharedMapping) -> None:
    torch.as_tensor(given, device="cuda").add_(1)
    torch.cuda.synchronize()
"""


def add(given: SharedMapping, wanted: Annotated[SharedMapping, "writable"], more: int) -> None: ...
def overwrite(given: SharedMapping) -> None: ...
def look(memory: MemoryHandle) -> tuple[int, int, str]: ...  # type: ignore[empty-body]


def spec() -> SandboxSpec:
    return SandboxSpec(gpu=gpu_state.identify().uuid, limits=LIMITS)


@pytest.mark.skipif(GPU, reason="this machine has a GPU; the other tests show that it works")
def test_without_a_driver_there_is_a_reason() -> None:
    with pytest.raises(DeviceMemoryError, match=r"no CUDA driver|does not start"):
        DeviceMemory(1)


class FakeDriver:
    """Answers every call with 0, but for the one that fails, and remembers the calls and what they were given."""

    def __init__(self, failing: str = "", status: int = 0) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self._failing, self._status = failing, status

    def __getattr__(self, name: str) -> Callable[..., int]:
        def answer(*arguments: Any) -> int:
            self.calls.append((name, [argument.value for argument in arguments if hasattr(argument, "value")]))
            return self._status if name == self._failing else 0

        return answer


def test_addresses_are_mapped_and_unmapped_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    monkeypatch.setattr(device_memory, "_driver", lambda: driver)
    monkeypatch.setattr(device_memory, "make_current", lambda _device: None)
    addresses = AddressRange(16 << 20)
    for _ in range(2):
        addresses.map_descriptor(3, 8 << 20)
        addresses.allow(2 << 20, 4 << 20, writable=False)
        addresses.unmap()
    addresses.unmap()
    addresses.close()
    once = [
        ("cuMemImportFromShareableHandle", [3, 1]),
        ("cuMemMap", [0, 8 << 20, 0, 0, 0]),
        ("cuMemSetAccess", [2 << 20, 4 << 20, 1]),
        ("cuMemUnmap", [0, 8 << 20]),
        ("cuMemRelease", [0]),
    ]
    assert driver.calls == [
        ("cuMemAddressReserve", [16 << 20, 0, 0, 0]),
        *once,
        *once,
        ("cuMemAddressFree", [0, 16 << 20]),
    ]


def test_a_stream_writes_a_word_and_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    monkeypatch.setattr(device_memory, "_driver", lambda: driver)
    device_memory.write_value(5, 1 << 40, (1 << 31) - 1)
    device_memory.wait_for_value(6, 1 << 40, 7)
    assert driver.calls == [
        ("cuStreamWriteValue32_v2", [5, 1 << 40, (1 << 31) - 1, 0]),
        ("cuStreamWaitValue32_v2", [6, 1 << 40, 7, 1]),
    ]


@pytest.mark.parametrize(("status", "kind"), [(2, OutOfDeviceMemoryError), (1, DeviceMemoryError)])
def test_too_little_memory_has_an_error_of_its_own(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[DeviceMemoryError]
) -> None:
    monkeypatch.setattr(device_memory, "_driver", lambda: FakeDriver("cuMemCreate", status))
    with pytest.raises(DeviceMemoryError, match=rf"cuMemCreate \(error {status}\)") as raised:
        device_memory.call("cuMemCreate")
    assert type(raised.value) is kind


def test_a_function_may_get_a_descriptor_to_map_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "memory"
    file.write_text("memory")
    descriptor = os.open(file, os.O_RDONLY)
    device = {"access": "handle", "name": "r", "nbytes": 5, "size": 6}
    request = {"call": "look", "arguments": [{"device": device}], "results": [None], "tuple": False}
    module = ModuleType("module")

    def looked(memory: MemoryHandle) -> tuple[int, int, str]:
        return memory.nbytes, memory.size, os.read(memory.descriptor, 9).decode()

    module.look = looked  # type: ignore[attr-defined]
    assert worker.answer(module, request, [descriptor]) == {"value": [[5, 6, "memory"]]}
    os.close(descriptor)


@pytest.mark.skipif(not GPU, reason="needs a GPU; run by hand, see docs/sandboxes.md")
def test_tensors_are_shared_and_calls_repeat(backend: Backend, module: Callable[[str], Path]) -> None:
    import torch  # noqa: PLC0415 - not in every environment of these tests

    with DeviceMemory(4_000_000) as given, DeviceMemory(4_000_000) as wanted:
        x, y = (torch.as_tensor(memory, device="cuda").view(torch.int32) for memory in (given, wanted))
        x.copy_(torch.arange(1_000_000))
        torch.cuda.synchronize()
        with SandboxedProcess(backend, module(MODULE), spec()) as process:
            for more in (1, 2, 3):
                process.call(add, given, wanted, more)
                assert torch.equal(y, x + more)


@pytest.mark.skipif(not GPU, reason="needs a GPU; run by hand, see docs/sandboxes.md")
def test_an_honest_slip_cannot_overwrite_an_input(backend: Backend, module: Callable[[str], Path]) -> None:
    import torch  # noqa: PLC0415 - as above

    with DeviceMemory(4_000_000) as given:
        x = torch.as_tensor(given, device="cuda").view(torch.int32)
        x.fill_(7)
        torch.cuda.synchronize()
        with SandboxedProcess(backend, module(MODULE), spec()) as process, pytest.raises(SandboxCrashError):
            process.call(overwrite, given)
        assert torch.all(x == 7)
