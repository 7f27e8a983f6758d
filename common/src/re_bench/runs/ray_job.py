"""What runs on a node of a Ray cluster: one job, with cores and GPUs of its own."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from re_bench.runs.local_pool import LocalPool, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLL_S = 0.2


def run_job(function: Callable[..., Any], arguments: tuple[Any, ...], resources: Resources) -> tuple[Any, Any]:
    """Run a job on a node, in a pool of its own, and return its result and its exception.

    Ray cancels it by an interrupt of this thread, which comes between two instructions and wakes no thread that waits.
    """
    import ray  # noqa: PLC0415 - of the extra `ray`

    gpus = [str(gpu) for gpu in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]
    with _own_cores(int(resources.cores) if resources.own_cores else 0) as cores:
        share = Resources(cores=len(cores) or 1, gpus=len(gpus), own_cores=bool(cores))
        pool = LocalPool(gpus, cores or None)
        try:
            future = pool.submit(function, *arguments, resources=share)
            while not wait([future], _POLL_S).done:
                time.sleep(0)  # an interrupt is raised here at the latest
            pool.wait()
        except BaseException:
            pool.stop()
            raise
    error = future.exception()
    if error is not None and error.__traceback__ is not None:
        error.add_note(f"on node {platform.node()}")
    return (None, error) if error is not None else (future.result(), None)


@contextmanager
def _own_cores(count: int) -> Iterator[list[int]]:
    """Yield so many cores of this machine that no other job has, or none where there are not as many."""
    if not count:
        yield []
        return
    directory = Path(tempfile.gettempdir()) / f"re-bench-cores-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    cores: list[int] = []
    with ExitStack() as held:
        for core in sorted(os.sched_getaffinity(0)):
            if len(cores) == count:
                break
            try:
                held.enter_context(FileLock(directory / f"{core}.lock", preserve_lock_file=True).acquire(timeout=0))
            except Timeout:
                continue
            cores.append(core)
        yield cores if len(cores) == count else []
