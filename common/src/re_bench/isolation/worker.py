"""The program inside the sandbox: it loads a task's harness and calls its functions on request.

Run as ``python -I worker.py SOCKET HARNESS``; it uses the standard library and the files of ours beside it.
A harness is a Python file with functions
``name(args: dict, inputs: list[memoryview], outputs: list[memoryview]) -> JSON value``; after the
memory views come those inputs and outputs that lie on the GPU.
Nothing that leaves this process is believed: it shares its memory with the submission.
"""

from __future__ import annotations

import importlib.util
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


def load(path: Path, name: str) -> ModuleType:
    """Import the file at ``path`` as module ``name``."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def shared_memory(descriptor: int, *, writable: bool) -> memoryview:
    """Map the shared memory behind ``descriptor``; empty memory cannot be mapped and becomes an empty view."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return memoryview(bytearray())
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    view = memoryview(mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=access))
    os.close(descriptor)
    return view


def device_memory(asked: dict[str, Any], descriptor: int) -> Any:
    """Map memory of the GPU, once for each name it goes by."""
    if asked["name"] not in mapped:
        name = "re_bench_device_memory"
        module = sys.modules.get(name) or load(Path(__file__).parent / "device_memory.py", name)
        sizes = (asked["nbytes"], asked["size"])
        mapped[asked["name"]] = module.SharedMapping.of_descriptor(descriptor, *sizes, writable=asked["writable"])
    os.close(descriptor)
    return mapped[asked["name"]]


def answer(harness: ModuleType, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Carry out one request and return the reply; an exception becomes a reply with its text."""
    on_device = request["device"]
    host, device = descriptors[: len(descriptors) - len(on_device)], descriptors[len(descriptors) - len(on_device) :]
    split = int(request["inputs"])
    inputs: list[Any] = [shared_memory(descriptor, writable=False) for descriptor in host[:split]]
    outputs: list[Any] = [shared_memory(descriptor, writable=True) for descriptor in host[split:]]
    try:
        for asked, descriptor in zip(on_device, device, strict=True):
            (outputs if asked["writable"] else inputs).append(device_memory(asked, descriptor))
        return {"value": getattr(harness, request["call"])(request["args"], inputs, outputs)}
    except BaseException as error:  # noqa: BLE001 - whatever a submission raises is an answer
        traceback.print_exc()
        return {"error": describe(error)}


def describe(error: BaseException) -> str:
    """Return an exception's text; its class is named too unless the class says that the text is enough."""
    text = str(error) if getattr(type(error), "plain", False) else f"{type(error).__name__}: {error}"
    return text[:MAX_ERROR]


def main() -> None:
    """Connect, load the harness, and answer until the connection ends."""
    address, harness_path = sys.argv[1], Path(sys.argv[2])
    here = Path(__file__).parent
    frames = load(here / "frames.py", "re_bench_frames")
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(address)
    sys.path.insert(0, str(harness_path.parent))
    try:
        harness = load(harness_path, harness_path.stem)
    except BaseException as error:
        frames.send(channel, {"error": describe(error)})
        raise
    frames.send(channel, {"value": "ready"})
    while True:
        try:
            request, descriptors = frames.receive(channel, MAX_REQUEST, accept_descriptors=True)
        except frames.FrameError:
            return
        frames.send(channel, answer(harness, request, descriptors))


if __name__ == "__main__":
    main()
