"""Checks of how much of the machine a program can take, memory apart."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.sandbox.conformance.attack import LIMITS, Check, answer, attack, fail_if, register, send, spec_showing
from re_bench.sandbox.spec import SandboxSpec

if TYPE_CHECKING:
    from re_bench.sandbox.spec import Backend

CHECKS: dict[str, Check] = {}
check = register(CHECKS)
_SEEN_WITHIN_S = 15  # what an attack leaves behind is measured before that on a busy machine too


def _fork(most: int) -> int:
    """Attack: start processes until the kernel refuses, and return how many there were."""
    children: list[int] = []
    with suppress(OSError):
        while len(children) < most:
            child = os.fork()
            if child == 0:
                time.sleep(2)
                os._exit(0)
            children.append(child)
    return len(children)


def _thread(most: int) -> int:
    """Attack: start threads until the kernel refuses, and return how many there were."""
    over = threading.Event()
    threading.stack_size(1 << 16)
    count = 0
    with suppress(RuntimeError):
        while count < most:
            threading.Thread(target=over.wait, args=(60,), daemon=True).start()
            count += 1
    over.set()
    return count


@check
def fork_bomb(backend: Backend, scratch: Path) -> None:
    """Processes and threads run into their limit."""
    del scratch
    for function in (_fork, _thread):
        count = answer(finished := send(backend, function, 4 * LIMITS.processes))
        if count is None and finished.status != -signal.SIGKILL:  # being ended is as good as being refused
            fail_if(f"the attack did not come to its end: {finished}")
        fail_if(f"{count} at a time where {LIMITS.processes} are allowed" if (count or 0) >= LIMITS.processes else "")


def _fill_disk(directory: str, files: int, mebibytes: int, keep: bool) -> int:
    """Attack: fill a directory with files, or with deleted files that are open; return how many MiB at once."""
    written = 0
    with suppress(OSError):
        for number in range(files):
            path = Path(directory, str(number))
            descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
            for _ in range(mebibytes):
                written += os.write(descriptor, b"x" * (1 << 20)) >> 20
            if keep:
                os.close(descriptor)
            else:
                path.unlink()
    time.sleep(_SEEN_WITHIN_S)
    return written if mebibytes else number >> 8


@check
def disk_bomb(backend: Backend, scratch: Path) -> None:
    """What a program writes into its writable directories is limited: large files, deleted files, empty files."""
    for number, (files, mebibytes, keep) in enumerate(((12, 7, True), (12, 7, False), (20_000, 0, True))):
        work = scratch / str(number)
        written = answer(send(backend, _fill_disk, str(work), files, mebibytes, keep, spec=spec_showing(write=work)))
        fail_if(f"{written} MiB were written where {LIMITS.disk_mib} are allowed" if written else "")


def _nest(directory: str, depth: int) -> bool:
    """Attack: hide a large file where its path is longer than any path may be."""
    os.chdir(directory)
    for _ in range(depth):
        os.mkdir("d" * 200)  # noqa: PTH102 - as short as it gets
        os.chdir("d" * 200)
    for number in range(6):
        Path(str(number)).write_bytes(b"x" * (7 << 20))
    time.sleep(_SEEN_WITHIN_S)
    return True


@check
def disk_bomb_out_of_sight(backend: Backend, scratch: Path) -> None:
    """Files in directories that cannot be walked do not escape the limit."""
    work = scratch / "work"
    done = answer(send(backend, _nest, str(work), 30, spec=spec_showing(write=work)))
    fail_if("42 MiB were written where 32 are allowed" if done else "")


def _grow(directory: str, mebibytes: int) -> list[str]:
    """Attack: make one large file, by writing, with a hole, and by reserving."""
    got = []
    path = Path(directory or tempfile.gettempdir(), "large")
    for way in ("write", "truncate", "reserve"):
        with suppress(OSError), path.open("wb", buffering=0) as file:
            if way == "truncate":
                file.truncate(1 << 40)
            elif way == "reserve":
                os.posix_fallocate(file.fileno(), 0, mebibytes << 20)
            else:
                for _ in range(mebibytes):
                    file.write(b"x" * (1 << 20))
        if path.stat().st_size > (mebibytes - 1) << 20:
            got.append(f"a file of {path.stat().st_size >> 20} MiB by {way}")
        path.unlink()
    return got


@check
def large_files(backend: Backend, scratch: Path) -> None:
    """No file is larger than the limit, not even a sparse one."""
    work = scratch / "work"
    for directory in (str(work), ""):
        fail_if(attack(backend, _grow, directory, LIMITS.file_mib + 1, spec=spec_showing(write=work)))


def _open_many(most: int) -> int:
    """Attack: open files until the kernel refuses, and return the highest number."""
    last = 0
    with suppress(OSError):
        while last < most:
            last = os.open("/dev/null", os.O_RDONLY)
    return last


@check
def open_files(backend: Backend, scratch: Path) -> None:
    """Open files run into their limit."""
    del scratch
    last = attack(backend, _open_many, 4 * LIMITS.open_files)
    fail_if(f"{last + 1} where {LIMITS.open_files} are allowed" if last >= LIMITS.open_files else "")


def _raise_limits() -> list[str]:
    """Attack: allow oneself more."""
    got = []
    for name in ("NPROC", "NOFILE", "FSIZE", "DATA", "CPU"):
        which = getattr(resource, f"RLIMIT_{name}")
        soft, hard = resource.getrlimit(which)
        if hard != resource.RLIM_INFINITY:
            with suppress(OSError, ValueError):
                resource.setrlimit(which, (soft, hard + 1))
                got.append(f"the limit {name} can be raised")
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -5)
        got.append("the priority can be raised")
    return got


@check
def limits_stay(backend: Backend, scratch: Path) -> None:
    """A program cannot raise its limits or its priority."""
    del scratch
    fail_if(attack(backend, _raise_limits, spec=SandboxSpec(limits=replace(LIMITS, cpu_s=10))))
