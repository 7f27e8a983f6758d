"""The program inside the sandbox: it loads a task's harness and calls its functions on request.

Run as ``python -I worker.py SOCKET HARNESS``; it uses the standard library and ``frames.py`` beside it.
A harness is a Python file with functions
``name(args: dict, inputs: list[memoryview], outputs: list[memoryview]) -> JSON value``.
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


def answer(harness: ModuleType, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
    """Carry out one request and return the reply; an exception becomes a reply with its text."""
    split = int(request["inputs"])
    inputs = [shared_memory(descriptor, writable=False) for descriptor in descriptors[:split]]
    outputs = [shared_memory(descriptor, writable=True) for descriptor in descriptors[split:]]
    try:
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
