"""What a GPU is, and what it is doing: the record that stands beside a measured time.

What a GPU is comes from the CUDA driver, which any program that times it needs anyway, because
scores depend on it. What it is doing comes from NVML through the optional package nvidia-ml-py;
that goes into the log, and what cannot be read there is None.
"""

from __future__ import annotations

import ctypes
import importlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from re_bench.errors import ReBenchError, UsageError
from re_bench.guest.device_memory import DeviceMemoryError, call, make_current
from re_bench.processes import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_MEMORY_CLOCK, _BUS_WIDTH = 36, 37  # CU_DEVICE_ATTRIBUTE_...; the clock in kHz
_UNKNOWN_STATE = 32  # NVML_PSTATE_UNKNOWN
_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)  # from the lowest bit up: nvmlClocksEventReason..., the last two nvmlClocksThrottleReason...


@dataclass(frozen=True)
class Gpu:
    """One GPU, as the CUDA driver presents it."""

    index: int
    """CUDA's ordinal in this process; CUDA_VISIBLE_DEVICES changes it."""
    name: str
    uuid: str
    """The name for life, ``GPU-…`` as nvidia-smi writes it."""
    driver: str | None
    """Version of the driver, None where NVML cannot be asked."""
    memory_clock_mhz: float
    """The highest; 0 where the driver does not tell."""
    bus_width_bits: int

    @property
    def peak_bandwidth(self) -> float:
        """Bytes per second between the GPU and its memory: two transfers per clock, over the whole bus.

        For an L4 (6251 MHz, 192 bits) these are the 300 GB/s of its data sheet; for an H200 (3201 MHz,
        6016 or 6144 bits, as its driver tells) they are 4.81 or 4.92 TB/s, where the data sheet says 4.8.

        Raises:
            ReBenchError: if the driver tells no clock or no bus width.
        """
        if not (self.memory_clock_mhz and self.bus_width_bits):
            raise ReBenchError(
                f"the driver does not tell the memory clock and bus width of {self.name}: no peak bandwidth"
            )
        return 2 * self.memory_clock_mhz * 1e6 * self.bus_width_bits / 8


def identify(index: int = 0) -> Gpu:
    """Return what the CUDA driver says of its device ``index``.

    Raises:
        UsageError: if there is no such device, or no driver.
    """
    try:
        return _identify(index)
    except DeviceMemoryError as error:
        raise UsageError(f"no GPU {index} here: {error}; this needs an NVIDIA GPU and its driver") from None


def identify_all() -> list[Gpu]:
    """Return what the CUDA driver says of all devices that it shows this process, at least one, in its order.

    Raises:
        UsageError: if there is none, or no driver.
    """
    count = ctypes.c_int()
    try:
        call("cuDeviceGetCount", ctypes.byref(count))
    except DeviceMemoryError as error:
        raise UsageError(f"no GPU here: {error}; this needs an NVIDIA GPU and its driver") from None
    if not count.value:
        raise UsageError("CUDA shows no GPU here; is CUDA_VISIBLE_DEVICES set to none?")
    return [identify(index) for index in range(count.value)]


def free_memory(index: int = 0) -> int:
    """Return the free memory of the CUDA device ``index``, in bytes; this starts CUDA's context on it.

    Raises:
        UsageError: if there is no such device, or no driver.
    """
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    try:
        make_current(index)
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    except DeviceMemoryError as error:
        raise UsageError(
            f"the memory of GPU {index} cannot be asked for: {error}; this needs an NVIDIA GPU and its driver"
        ) from None
    return free.value


def snapshot(uuid: str) -> dict[str, Any]:
    """Return what the GPU ``uuid`` is doing now, as JSON values; what cannot be read is None.

    Keys: ``sm_clock_mhz``, ``memory_clock_mhz``, ``temperature_c``, ``power_w``, ``throttle_reasons``
    (see :func:`throttle_reasons`), ``performance_state`` ("P0" is the fastest), ``utilisation`` (percent
    of the last moments in which a kernel ran), ``processes`` that compute on it (a list of ``pid``, ``name``,
    ``used_mib``), and ``note`` where NVML tells nothing at all. In a container NVML may tell the host's
    pids, or leave processes out.
    """
    try:
        with _nvml() as nvml:
            handle = _handle(nvml, uuid)
            return {field: _read(nvml, query, handle) for field, query in _FIELDS.items()}
    except _UnavailableError as error:
        return {**dict.fromkeys(_FIELDS), "note": str(error)}


def throttle_reasons(mask: int) -> list[str]:
    """Return the sorted names of NVML's reasons why the clocks are not at their highest, unknown bits as ``bit_N``."""
    bits = (bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    return sorted(_REASONS[bit] if bit < len(_REASONS) else f"bit_{bit}" for bit in bits)


def other_processes(snapshot: Mapping[str, Any], ours: Iterable[int]) -> list[dict[str, Any]]:
    """Return the processes of a snapshot that are neither among the pids ``ours`` nor descend from them.

    Ask while ours still run. An empty list says little where ``snapshot["processes"]`` is None.
    """
    own = {pid for root in ours for pid in tree(root)}
    return [process for process in snapshot["processes"] or [] if process["pid"] not in own]


def _identify(index: int) -> Gpu:
    device, name, uuid = ctypes.c_int(), ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
    call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
    call("cuDeviceGetName", name, ctypes.c_int(len(name)), device)
    call("cuDeviceGetUuid_v2", uuid, device)
    return Gpu(
        index=index,
        name=name.value.decode(errors="replace"),
        uuid=f"GPU-{UUID(bytes=bytes(uuid))}",
        driver=_driver_version(),
        memory_clock_mhz=_attribute(device, _MEMORY_CLOCK) / 1000,
        bus_width_bits=_attribute(device, _BUS_WIDTH),
    )


def _attribute(device: ctypes.c_int, which: int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), device)
    return value.value


def _driver_version() -> str | None:
    with suppress(_UnavailableError), _nvml() as nvml, suppress(nvml.NVMLError):
        return str(nvml.nvmlSystemGetDriverVersion())
    return None


class _UnavailableError(Exception):
    """NVML is not there, or does not know the GPU."""


@contextmanager
def _nvml() -> Iterator[Any]:
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        raise _UnavailableError(
            "the package nvidia-ml-py is not installed (it comes with re-bench-common[gpu])"
        ) from None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise _UnavailableError(f"NVML does not start: {error}") from None
    try:
        yield nvml
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _handle(nvml: Any, uuid: str) -> Any:
    for name in (uuid, uuid.replace("GPU-", "MIG-", 1)):  # CUDA tells a slice's bytes, not that it is one
        with suppress(nvml.NVMLError):
            return nvml.nvmlDeviceGetHandleByUUID(name)
    raise _UnavailableError(f"NVML knows no GPU {uuid}")


def _read(nvml: Any, query: Callable[[Any, Any], Any], handle: Any) -> Any:
    with suppress(nvml.NVMLError, AttributeError):  # not supported by this GPU, driver or release of the package
        return query(nvml, handle)
    return None


def _throttled(nvml: Any, handle: Any) -> list[str]:
    with suppress(nvml.NVMLError, AttributeError):  # the name it has had since driver 535
        return throttle_reasons(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    return throttle_reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _performance_state(nvml: Any, handle: Any) -> str | None:
    state = nvml.nvmlDeviceGetPerformanceState(handle)
    return None if state == _UNKNOWN_STATE else f"P{state}"


def _processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return sorted((_process(one.pid, one.usedGpuMemory) for one in running), key=lambda process: process["pid"])


def _process(pid: int, used: int | None) -> dict[str, Any]:
    name = None
    with suppress(OSError):
        comm = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
        name = "".join(filter(str.isprintable, comm))
    return {"pid": pid, "name": name, "used_mib": None if used is None else used >> 20}


_FIELDS: dict[str, Callable[[Any, Any], Any]] = {
    "sm_clock_mhz": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
    "temperature_c": lambda nvml, handle: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
    "power_w": lambda nvml, handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    "throttle_reasons": _throttled,
    "performance_state": _performance_state,
    "utilisation": lambda nvml, handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    "processes": _processes,
}
