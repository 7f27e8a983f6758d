"""The one pool of jobs: on this machine, or on a Ray cluster. A job supervises programs, and the pool the jobs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.runs.local_pool import LocalPool, Pool, Resources, job_gpus
from re_bench.runs.ray_pool import RayPool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Pool", "Resources", "job_gpus", "open_pool"]


@contextmanager
def open_pool(address: str | None = None, *, gpus: Sequence[str] | None = None) -> Iterator[Pool]:
    """Yield a pool; the block ends when all jobs have.

    If the block is left by an exception, an interrupt or a signal (see :func:`re_bench.processes.cli_entry_point`),
    what runs is ended and nothing more is started.

    Args:
        address: of a Ray cluster, as ``ray.init`` takes it; None for this machine.
        gpus: UUIDs of those of this machine that jobs may have; None for all that CUDA shows.

    Raises:
        UsageError: if there is no such cluster.
    """
    pool = LocalPool(gpus) if address is None else RayPool(address)
    try:
        yield pool
        pool.wait()
    except BaseException:
        pool.stop()
        raise
