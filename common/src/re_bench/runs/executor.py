"""Where jobs run that supervise programs: on this machine, or on a Ray cluster, behind one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.runs.local_executor import Executor, LocalExecutor, Resources, job_gpus
from re_bench.runs.ray_executor import RayExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Executor", "Resources", "job_gpus", "open_executor"]


def open_executor(address: str | None = None, *, gpus: Sequence[str] | None = None) -> Executor:
    """Return an executor, for a ``with`` block.

    Args:
        address: of a Ray cluster, as ``ray.init`` takes it; None for this machine.
        gpus: UUIDs of those of this machine that jobs may have; None for all that CUDA shows.

    Raises:
        UsageError: if there is no such cluster.
    """
    return LocalExecutor(gpus) if address is None else RayExecutor(address)
