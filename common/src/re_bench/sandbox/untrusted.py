"""A sandboxed process that runs a submission's code and answers calls; nothing it answers is believed.

The scorer hands it inputs in shared memory that it cannot change, and room for outputs
whose size it cannot change, and gets back one JSON value. The scorer copies outputs
before it looks at them, so that a submission cannot change them between check and use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from re_bench import guest
from re_bench.errors import InvalidSubmissionError
from re_bench.guest import ipc
from re_bench.sandbox import deadline
from re_bench.sandbox.process import Running, accept, describe_exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from re_bench.guest.device_memory import DeviceMemory
    from re_bench.sandbox.spec import Backend, SandboxSpec

_GUEST = Path(guest.__file__).parent
_MAX_REPLY = 4 << 20
_START_S = 60.0
_TAIL = 600


class SubmissionFaultError(InvalidSubmissionError):
    """An untrusted process raised, crashed, answered nonsense, or used more than it may."""


@dataclass(frozen=True)
class Reply:
    """The answer of an untrusted process to one call."""

    value: Any
    """A JSON value."""
    outputs: tuple[bytes, ...]
    """The outputs asked for, of exactly the sizes asked for."""


class Untrusted:
    """A sandboxed Python process with a task's harness in it.

    Args:
        backend: the sandbox.
        harness: a Python file of the task. Of the task, the process sees the package that the file is in, under its
            own name and read-only, or the file alone where it is in none.
        spec: says what else the process sees, and its limits.

    The harness is imported while the caller goes on; the first call waits for it.

    Raises:
        ReBenchError: if the process does not come up.
    """

    def __init__(self, backend: Backend, harness: Path, spec: SandboxSpec) -> None:
        self._stack = ExitStack()
        self._limits, self._held_out = spec.limits, False
        try:
            self._running, self._channel = self._start(backend, harness.resolve(), spec)
            self._ready = False
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def call(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        inputs: Sequence[Buffer | NDArray[Any]] = (),
        outputs: Sequence[int] = (),
        device_inputs: Sequence[DeviceMemory] = (),
        device_outputs: Sequence[DeviceMemory] = (),
        device_descriptors: Sequence[DeviceMemory] = (),
        timeout_s: float | None = None,
        held_out: bool = False,
    ) -> Reply:
        """Call the harness function ``name`` and return its answer.

        Args:
            name: a function of the harness.
            args: JSON values for it.
            inputs: buffers that it may read.
            outputs: sizes in bytes of the buffers that it may write.
            device_inputs: memory of the GPU that it may read, passed after ``inputs`` without a copy.
            device_outputs: memory of the GPU that it may write, passed after ``outputs``; look at a copy of it.
            device_descriptors: memory of the GPU that the harness maps by itself, when and for as long as it wants: it
                gets the descriptor and the sizes, after ``device_inputs``.
            timeout_s: wall-clock seconds to wait; by default what the process has left.
            held_out: whether the process gets held-out data here. From now on the reason of a fault has no words of the
                process and not how it ended, only whether it was late; the rest is ``withheld`` for the operator.

        Raises:
            SubmissionFaultError: if it raises, dies, answers nonsense, or takes too long.
            TimeLimitError: if the deadline of the whole scoring passed meanwhile.
        """
        if not self._ready:
            self._exchange(_START_S, "loading the harness")
            self._ready = True
        what = f"the call of {name}"
        self._held_out |= held_out
        with ExitStack() as memories:
            sources = [_sealed_copy(memories, data) for data in inputs]
            targets = [_sized(memories, size) for size in outputs]
            device = [
                *(_device_request(m, writable=False) for m in device_inputs),
                *({**_device_request(m, writable=False), "mapped": False} for m in device_descriptors),
                *(_device_request(m, writable=True) for m in device_outputs),
            ]
            request = {"call": name, "args": dict(args or {}), "inputs": len(sources), "device": device}
            on_device = (*device_inputs, *device_descriptors, *device_outputs)
            descriptors = [*sources, *targets, *(memory.descriptor for memory in on_device)]
            value = self._exchange(timeout_s or self._limits.wall_s, what, request, descriptors)
            return Reply(value, tuple(os.pread(target, size, 0) for target, size in zip(targets, outputs, strict=True)))

    def output(self) -> tuple[str, str]:
        """Return what the process has printed so far to stdout and stderr, long middles left out."""
        return self._running.stdout.text(), self._running.stderr.text()

    def cpu_seconds(self) -> float:
        """Return the processor time that the process and all it started have used so far."""
        return self._running.cpu_seconds()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have the process and all it started stand still for the length of a ``with`` block.

        What they have given a GPU to do goes on. Processes that are not our descendants, as in a container, run on.
        """
        try:
            self._running.pause()
            yield
        finally:
            self._running.resume()

    def _start(self, backend: Backend, harness: Path, spec: SandboxSpec) -> tuple[Running, socket.socket]:
        root = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="re-bench-")))
        root.chmod(0o755)  # the sandbox runs as another user
        module = _lay_out(root, harness)
        address = root / "channel"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            address.chmod(0o666)
            listener.listen(1)
            visible = {**spec.read_only, str(root): root}
            program = [
                backend.python,
                "-I",
                str(root / "re_bench" / "guest" / "worker.py"),
                str(address),
                module,
            ]
            running = self._stack.enter_context(Running(backend, program, replace(spec, read_only=visible)))
            channel = self._stack.enter_context(accept(listener, running, _START_S))
        address.unlink()
        return running, channel

    def _exchange(
        self, timeout_s: float, what: str, request: dict[str, Any] | None = None, descriptors: Sequence[int] = ()
    ) -> Any:
        """Send ``request``, if any, and return the value of the reply."""
        latest = time.monotonic() + timeout_s
        self._channel.settimeout(timeout_s)
        try:
            if request is not None:
                ipc.send(self._channel, request, list(descriptors))
            reply, _descriptors = ipc.receive(self._channel, _MAX_REPLY, accept_descriptors=False, deadline=latest)
        except TimeoutError:
            deadline.raise_if_over()
            late = f"{what} took longer than {timeout_s:g} s"
            self._running.stop(late)
            raise self._submission_fault(late, self._why(what, None)) from None
        except (ValueError, RecursionError) as error:
            # An argument came from another untrusted process and is nested too deeply, say.
            raise self._submission_fault(f"{what} failed", f"{what} cannot be asked: {error}") from None
        except (ipc.FrameError, OSError) as error:
            deadline.raise_if_over()
            raise self._submission_fault(f"{what} failed", self._why(what, error)) from None
        if "error" in reply:
            raise self._submission_fault(f"{what} failed", str(reply["error"]))
        return reply.get("value")

    def _submission_fault(self, short: str, reason: str) -> SubmissionFaultError:
        """Return the fault that its author reads of, in our own words alone where held-out data is in the process."""
        if not self._held_out:
            return SubmissionFaultError(reason)
        return SubmissionFaultError(f"{short}; no more is told, since the process has held-out data", reason)

    def _why(self, what: str, error: Exception | None) -> str:
        """Return why there is no answer, with the end of what the process printed to stderr."""
        if isinstance(error, ipc.FrameError) and "closed" not in str(error):
            self._running.stop("it broke the protocol")
            return f"{what} failed: {error}"
        finished = self._running.wait_at_most(2.0)
        if finished is not None:
            self._running.kill()  # after which all of its output has arrived
        reason = self._running.stopped or f"the process ended with {describe_exit(finished)}"
        tail = self._running.stderr.text().strip()[-_TAIL:]
        message = reason if reason.startswith(what) else f"{what} failed: {reason}"
        return message + (f"; the end of its stderr:\n{tail}" if tail else "")


def _device_request(memory: DeviceMemory, *, writable: bool) -> dict[str, Any]:
    # The name differs by use, so that an input is not mapped writable because it once was an output.
    name = f"{memory.name}{'w' if writable else 'r'}"
    return {"name": name, "nbytes": memory.nbytes, "size": memory.size, "writable": writable}


def _lay_out(root: Path, harness: Path) -> str:
    """Lay out in ``root`` the only files of ours that the process sees; return the name of the harness's module."""
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_GUEST, root / "re_bench" / "guest", ignore=without_caches)
    (root / "re_bench" / "__init__.py").touch()
    target, directory = root / "task", harness.parent
    target.mkdir()
    if (directory / "task.toml").exists() or not (directory / "__init__.py").is_file():
        shutil.copy(harness, target)
        return harness.stem
    names = [directory.name]
    while (directory.parents[len(names) - 1] / "__init__.py").is_file():
        names.insert(0, directory.parents[len(names) - 1].name)
    shutil.copytree(directory, target.joinpath(*names), ignore=without_caches)
    for depth in range(1, len(names)):
        (target.joinpath(*names[:depth]) / "__init__.py").touch()
    return ".".join([*names, harness.stem])


def _sealed_copy(memories: ExitStack, data: Buffer | NDArray[Any]) -> int:
    """Return shared memory with a copy of ``data`` that nobody can change."""
    view = memoryview(data).cast("B")  # type: ignore[arg-type] # numpy arrays are buffers in Python 3.11 too
    descriptor = _sized(memories, view.nbytes)
    while view:
        view = view[os.write(descriptor, view) :]
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL)
    return descriptor


def _sized(memories: ExitStack, size: int) -> int:
    """Return zeroed shared memory whose size nobody can change."""
    descriptor = os.memfd_create("re-bench", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    memories.callback(os.close, descriptor)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor
