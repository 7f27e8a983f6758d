"""Checks of how much memory a program can take, in all the places where memory can be held."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.sandbox.conformance.attack import LIMITS, Check, answer, attack, fail_if, register, send

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)

_MEMORY = LIMITS.memory_mib
_SLACK = 8  # MiB
_ALLOWED = _MEMORY + _SLACK
_HELD_S = 15  # where nothing refuses it, until whoever watches has looked, on a busy machine too


def _take(kind: int, mebibytes: int) -> int:
    """Take memory and fill it; return how much."""
    with suppress(OSError, MemoryError):
        memory = mmap.mmap(-1, mebibytes << 20, flags=kind | mmap.MAP_ANONYMOUS)
        for _ in range(mebibytes):
            memory.write(b"x" * (1 << 20))
        memory.seek(0)
        globals().setdefault("kept", []).append(memory)
        return mebibytes
    return 0


def _hold_memory(kind: int, mebibytes: int, processes: int) -> int:
    """Attack: fill memory in many processes, keep it for a while, and return how many MiB were held at once."""
    reading, writing = os.pipe()
    for _ in range(processes):
        if os.fork() == 0:
            os.write(writing, bytes([_take(kind, mebibytes)]))
            time.sleep(2 * _HELD_S)
            os._exit(0)
    os.close(writing)
    held = sum(sum(os.read(reading, 1)) for _ in range(processes))
    time.sleep(_HELD_S * (held > _ALLOWED))
    return held


def _check_memory(backend: Backend, function: Any, *arguments: Any) -> None:
    """Run an attack that returns how many MiB it held; being stopped, or killed, is as good as being refused."""
    held = answer(send(backend, function, *arguments))
    fail_if(f"{held} MiB were held where {_MEMORY} are allowed" if held is not None and held > _ALLOWED else "")


@check
def memory_of_processes(backend: Backend, scratch: Path) -> None:
    """Private memory of all processes together is limited, and of one process too."""
    del scratch
    _check_memory(backend, _hold_memory, mmap.MAP_PRIVATE, 100, 4)
    _check_memory(backend, _hold_memory, mmap.MAP_PRIVATE, 250, 1)


@check
def memory_that_is_shared(backend: Backend, scratch: Path) -> None:
    """Anonymous memory that is mapped as shared is limited like any other."""
    del scratch
    _check_memory(backend, _hold_memory, mmap.MAP_SHARED, 100, 4)


def _fork_after(mebibytes: int, processes: int) -> int:
    """Attack, of a kind: let processes share what their parent holds, which is harmless."""
    held = _take(mmap.MAP_PRIVATE, mebibytes) and _take(mmap.MAP_SHARED, mebibytes)
    for _ in range(processes):
        if os.fork() == 0:
            time.sleep(0.4)
            os._exit(0)
    time.sleep(0.3)
    return held


@check
def memory_in_common(backend: Backend, scratch: Path) -> None:
    """Memory that processes have in common counts once."""
    del scratch
    attack(backend, _fork_after, 60, 6)


def _fill_files(directory: str, mebibytes: int, file_mib: int) -> int:
    """Attack: fill a directory for temporary files, by default the sandbox's own; return how many MiB went in."""
    directory = directory or tempfile.gettempdir()
    block = b"x" * (1 << 20)
    paths = [Path(f"{directory}/re-bench-{os.getpid()}-{number}") for number in range(mebibytes // file_mib)]
    written = 0
    with suppress(OSError):
        for path in paths:
            with path.open("wb", buffering=0) as file:
                for _ in range(file_mib):
                    written += file.write(block) >> 20
    time.sleep(_HELD_S * (written > _ALLOWED))
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return written


@check
def files_in_memory(backend: Backend, scratch: Path) -> None:
    """``/tmp``, ``/dev/shm`` and the directory for temporary files hold no more than the limit on memory."""
    del scratch
    for directory in ("", "/tmp", "/dev/shm"):  # noqa: S108
        _check_memory(backend, _fill_files, directory, 2 * _MEMORY, LIMITS.file_mib)


def _hold_memfd(mebibytes: int, file_mib: int) -> int:
    """Attack: fill memory that is mapped nowhere; return how many MiB."""
    held = 0
    with suppress(OSError):
        for _ in range(mebibytes // file_mib):
            descriptor = os.memfd_create("re-bench")
            for _ in range(file_mib):
                held += os.write(descriptor, b"x" * (1 << 20)) >> 20
    time.sleep(_HELD_S * (held > _ALLOWED))
    return held


def _hold_segments(mebibytes: int, file_mib: int) -> int:
    """Attack: fill System V segments and detach from them; return how many MiB."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segments = []
    for _ in range(mebibytes // file_mib):
        segment = libc.shmget(0, file_mib << 20, 0o1600)
        if segment < 0:
            break
        segments.append(segment)
        address = libc.shmat(segment, None, 0)
        ctypes.memset(address, 1, file_mib << 20)
        libc.shmdt(ctypes.c_void_p(address))
    time.sleep(_HELD_S * (file_mib * len(segments) > _ALLOWED))
    for segment in segments:
        libc.shmctl(segment, 0, None)
    return file_mib * len(segments)


@check
def memory_that_nobody_maps(backend: Backend, scratch: Path) -> None:
    """Memory behind descriptors and System V segments is limited too."""
    del scratch
    _check_memory(backend, _hold_memfd, 2 * _MEMORY, LIMITS.file_mib)
    _check_memory(backend, _hold_segments, 2 * _MEMORY, 64)
