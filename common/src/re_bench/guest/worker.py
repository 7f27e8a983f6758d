"""The program inside the sandbox: it loads a task's harness and calls its functions on request.

Run as ``python -I DIRECTORY/re_bench/guest/worker.py SOCKET MODULE``; the harness is that module in ``DIRECTORY/task``,
with functions ``name(args: dict, inputs: list[memoryview], outputs: list[memoryview]) -> JSON value``; after the memory
views come those inputs and outputs that lie on the GPU, and among the inputs, as ``{"descriptor", "nbytes", "size"}``,
memory of the GPU that the harness maps by itself.
Nothing that leaves this process is believed: it shares its memory with the submission.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import socket
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

MAX_REQUEST = 64 << 20
MAX_ERROR = 4000

mapped: dict[str, Any] = {}


def shared_memory(descriptor: int, *, writable: bool) -> memoryview:
    """Map the shared memory behind ``descriptor``; empty memory cannot be mapped and becomes an empty view."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return memoryview(bytearray())
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    view = memoryview(mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=access))
    os.close(descriptor)
    return view


def device_memory(memory: dict[str, Any], descriptor: int) -> Any:
    """Map memory of the GPU, once for each name it goes by; what is not to be mapped becomes its description."""
    if not memory.get("mapped", True):
        return {"descriptor": descriptor, "nbytes": memory["nbytes"], "size": memory["size"]}
    if memory["name"] not in mapped:
        module = importlib.import_module("re_bench.guest.device_memory")
        sizes = (memory["nbytes"], memory["size"])
        mapped[memory["name"]] = module.SharedMapping.of_descriptor(descriptor, *sizes, writable=memory["writable"])
    os.close(descriptor)
    return mapped[memory["name"]]


def answer(harness: ModuleType, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Carry out one request and return the reply; an exception becomes a reply with its text."""
    on_device = request["device"]
    host, device = descriptors[: len(descriptors) - len(on_device)], descriptors[len(descriptors) - len(on_device) :]
    split = int(request["inputs"])
    inputs: list[Any] = [shared_memory(descriptor, writable=False) for descriptor in host[:split]]
    outputs: list[Any] = [shared_memory(descriptor, writable=True) for descriptor in host[split:]]
    try:
        for memory, descriptor in zip(on_device, device, strict=True):
            (outputs if memory["writable"] else inputs).append(device_memory(memory, descriptor))
        return {"value": getattr(harness, request["call"])(request["args"], inputs, outputs)}
    except BaseException as error:  # noqa: BLE001 - whatever a submission raises is an answer
        traceback.print_exc()
        return {"error": describe(error)}


def describe(error: BaseException) -> str:
    """Return an exception's text; its class is named too unless it is a refusal, whose text is enough."""
    refused = importlib.import_module("re_bench.guest.refused")
    text = str(error) if isinstance(error, refused.RefusedError) else f"{type(error).__name__}: {error}"
    return text[:MAX_ERROR]


def connected(address: str) -> socket.socket:
    """Return the channel: a new connection to a socket's path, or the inherited one of ``descriptor:N``."""
    prefix, _colon, number = address.partition(":")
    if prefix == "descriptor":
        return socket.socket(fileno=int(number))
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(address)
    return channel


def main() -> None:
    """Connect, load the harness, and answer until the connection ends."""
    address, module = sys.argv[1:]
    directory = Path(__file__).parents[2]
    sys.path[:0] = [str(directory / "task"), str(directory)]
    ipc = importlib.import_module("re_bench.guest.ipc")
    channel = connected(address)
    gc.disable()  # what is imported stays, and looking there for garbage meanwhile is a sixth of torch's start
    try:
        harness = importlib.import_module(module)
    except BaseException as error:
        ipc.send(channel, {"error": describe(error)})
        raise
    gc.enable()
    ipc.send(channel, {"value": "ready"})
    while True:
        try:
            request, descriptors = ipc.receive(channel, MAX_REQUEST, accept_descriptors=True)
        except ipc.FrameError:
            return
        ipc.send(channel, answer(harness, request, descriptors))


if __name__ == "__main__":
    main()
