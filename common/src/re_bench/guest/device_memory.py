"""GPU memory that two processes share without copying, across the walls of a sandbox.

CUDA's older IPC handles do not open in another process namespace. Memory of the driver's
virtual memory management does: it is exported as a file descriptor, which travels like any
other. Source: the CUDA driver API, "Virtual Memory Management".

This file is also read by the worker inside the sandbox, so it uses the standard library only.
"""

from __future__ import annotations

import ctypes
import os
import secrets
from functools import lru_cache
from typing import Any, Self

_PINNED = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_POSIX_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_ON_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_READ, _READ_WRITE = 1, 3  # CU_MEM_ACCESS_FLAGS_PROT_READ, ..._READWRITE
_WAIT_EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ
_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_SIZE = ctypes.c_size_t
_ADDRESS = ctypes.c_uint64


class DeviceMemoryError(RuntimeError):
    """There is no CUDA driver, or it refused; the text says which call."""


class OutOfDeviceMemoryError(DeviceMemoryError):
    """The device has too little memory left."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("security", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class AddressRange:
    """Addresses of the device at which one piece of memory after another is mapped.

    Args:
        size: bytes, a multiple of the driver's granularity.
        device: ordinal of the device.
    """

    def __init__(self, size: int, *, device: int = 0) -> None:
        make_current(device)
        self.size, self._device = size, device
        self._handle, self._mapped = ctypes.c_uint64(), 0
        self._address = _ADDRESS()
        call("cuMemAddressReserve", ctypes.byref(self._address), _SIZE(size), _SIZE(0), _ADDRESS(0), ctypes.c_uint64(0))

    @property
    def start(self) -> int:
        """The first address."""
        return int(self._address.value or 0)

    def map_descriptor(self, descriptor: int, size: int) -> None:
        """Map ``size`` bytes of memory that another process exported; ``descriptor`` may be closed afterwards.

        Nothing can be accessed until :meth:`allow`.
        """
        make_current(self._device)
        handle = ctypes.c_uint64()
        where = ctypes.c_void_p(descriptor)
        call("cuMemImportFromShareableHandle", ctypes.byref(handle), where, ctypes.c_int(_POSIX_DESCRIPTOR))
        self.map_handle(handle, size)

    def map_handle(self, handle: ctypes.c_uint64, size: int) -> None:
        """Map memory by the driver's handle of it, which is released in :meth:`unmap`."""
        call("cuMemMap", self._address, _SIZE(size), _SIZE(0), handle, ctypes.c_uint64(0))
        self._handle, self._mapped = handle, size

    def allow(self, offset: int, size: int, *, writable: bool) -> None:
        """Have this process access a part of what is mapped; both numbers are multiples of the granularity."""
        access = _Access(_Location(_ON_DEVICE, self._device), _READ_WRITE if writable else _READ)
        call("cuMemSetAccess", _ADDRESS(self.start + offset), _SIZE(size), ctypes.byref(access), _SIZE(1))

    def unmap(self) -> None:
        """Let go of the memory that is mapped, if any; work on it must be done."""
        if self._mapped:
            call("cuMemUnmap", self._address, _SIZE(self._mapped))
            call("cuMemRelease", self._handle)
            self._mapped = 0

    def close(self) -> None:
        """Unmap, and give the addresses back."""
        self.unmap()
        call("cuMemAddressFree", self._address, _SIZE(self.size))


class SharedMapping:
    """A range of GPU memory, as ``torch.as_tensor(mapping, device="cuda")`` takes it: one-dimensional, of bytes.

    Args:
        addresses: where the memory is mapped.
        nbytes: bytes asked for.
    """

    def __init__(self, addresses: AddressRange, nbytes: int) -> None:
        self._addresses, self.nbytes, self.size = addresses, nbytes, addresses.size

    @classmethod
    def of_descriptor(
        cls, descriptor: int, nbytes: int, size: int, *, writable: bool, device: int = 0
    ) -> SharedMapping:
        """Map memory that another process exported; ``descriptor`` may be closed afterwards.

        Args:
            descriptor: the exported memory.
            nbytes: bytes asked for.
            size: bytes there are, rounded up to the driver's granularity.
            writable: whether this process maps it writable.
            device: ordinal of the device.
        """
        addresses = AddressRange(size, device=device)
        addresses.map_descriptor(descriptor, size)
        addresses.allow(0, size, writable=writable)
        return cls(addresses, nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface; the stream is left to the caller to synchronise."""
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self._addresses.start, False), "version": 3}

    def close(self) -> None:
        """Unmap and let go of the memory; tensors over it must be gone, and work on it done."""
        self._addresses.close()


class DeviceMemory(SharedMapping):
    """GPU memory of ours that can be shown to an untrusted process; see :meth:`Untrusted.call`.

    The other process maps an input read-only, but a hostile one can map it writable: compute
    truth from a private copy.

    Raises:
        OutOfDeviceMemoryError: if there is not enough memory.
        DeviceMemoryError: without a driver, or if it refuses.
    """

    def __init__(self, nbytes: int, *, device: int = 0) -> None:
        make_current(device)
        properties = _Properties(_PINNED, _POSIX_DESCRIPTOR, _Location(_ON_DEVICE, device))
        grain = ctypes.c_size_t()
        call("cuMemGetAllocationGranularity", ctypes.byref(grain), ctypes.byref(properties), ctypes.c_int(0))
        size = max(-(-nbytes // grain.value), 1) * grain.value
        handle, descriptor = ctypes.c_uint64(), ctypes.c_int()
        call("cuMemCreate", ctypes.byref(handle), _SIZE(size), ctypes.byref(properties), ctypes.c_uint64(0))
        kind = ctypes.c_int(_POSIX_DESCRIPTOR)
        call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, kind, ctypes.c_uint64(0))
        super().__init__(AddressRange(size, device=device), nbytes)
        self._addresses.map_handle(handle, size)
        self._addresses.allow(0, size, writable=True)
        self.descriptor = descriptor.value
        self.name = secrets.token_hex(8)
        """What the other process remembers the mapping by, so that it maps once however many calls there are."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmap, release, and close the descriptor."""
        super().close()
        os.close(self.descriptor)


def write_value(stream: int, address: int, value: int) -> None:
    """Have a word of 32 bits written when all work that ``stream`` was given before is done and can be seen.

    Args:
        stream: handle of a stream of the current context; 0 is its default stream.
        address: where the word lies, in memory that the context may write.
        value: what is written.
    """
    call("cuStreamWriteValue32_v2", *_stream_arguments(stream, address, value), ctypes.c_uint(0))


def wait_for_value(stream: int, address: int, value: int) -> None:
    """Have the work that ``stream`` is given from now on wait until a word of 32 bits has a value; see above.

    The GPU looks for it, and takes no time from the work of other processes to do so. Another process may be the one
    that writes it; who waits has to see to it that somebody does.
    """
    call("cuStreamWaitValue32_v2", *_stream_arguments(stream, address, value), ctypes.c_uint(_WAIT_EQUAL))


def _stream_arguments(stream: int, address: int, value: int) -> tuple[Any, ...]:
    return ctypes.c_void_p(stream), _ADDRESS(address), ctypes.c_uint32(value)


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceMemoryError(f"no CUDA driver: {error}") from None
    if status := driver.cuInit(0):
        raise DeviceMemoryError(f"the CUDA driver does not start (cuInit: error {status})")
    return driver


@lru_cache(maxsize=8)
def _context(device: int) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
    return context


def make_current(device: int) -> None:
    """Make the device's primary context, which torch uses too, the calling thread's own.

    Raises:
        DeviceMemoryError: without a driver, or if it refuses.
    """
    call("cuCtxSetCurrent", _context(device))


def call(name: str, *arguments: Any) -> None:
    """Call a function of the CUDA driver API, with arguments of its ctypes.

    Raises:
        OutOfDeviceMemoryError: if the function says so.
        DeviceMemoryError: without a driver, or if the function returns anything else but 0.
    """
    if status := getattr(_driver(), name)(*arguments):
        kind = OutOfDeviceMemoryError if status == _OUT_OF_MEMORY else DeviceMemoryError
        raise kind(f"the CUDA driver refused {name} (error {status})")
