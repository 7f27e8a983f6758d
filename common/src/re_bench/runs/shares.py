"""How much of a machine one scoring gets, so that scorings side by side disturb no measurement."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from re_bench.runs.node import Conditions
from re_bench.runs.pool import Pool, Resources

if TYPE_CHECKING:
    from re_bench.gpu.devices import GpuPlan
    from re_bench.task.discovery import Task

_WAITING_FOR_GPU = 2
"""Scorings that may start while another holds a GPU."""


def default_jobs(task: Task, profile: str, gpus: GpuPlan | None = None, pool: Pool | None = None) -> int:
    """Return how many scorings to run at a time on a machine: this one, or one of the pool's.

    On each GPU a few start while one is timed, since a GPU has a lock, if there are enough cores not to disturb it.
    Elsewhere as many as we have cores where the manifest says ``parallel``, else one.
    """
    cores = pool.cores if pool else len(os.sched_getaffinity(0))
    entry = task.manifest.profiles[profile]
    if entry.device != "cuda":
        return cores if entry.parallel else 1
    if pool is not None and pool.remote:
        used = max(1, pool.gpus)
    else:
        used = len(gpus.other if entry.parallel else gpus.timed) if gpus else 1
    return min((_WAITING_FOR_GPU + 1) * used, max(1, cores // 4))


def share(
    pool: Pool, task: Task, profile: str, jobs: int, *, gpus: GpuPlan | None = None, gpu_type: str | None = None
) -> Resources:
    """Return what one of ``jobs`` scorings at a time gets of a machine: its part of the cores and GPUs.

    Args:
        pool: where they run.
        task: the task.
        profile: a profile's own name.
        jobs: how many run on a machine at a time.
        gpus: those of this machine, if its scorings are to be dealt out among them.
        gpu_type: as in :class:`re_bench.runs.pool.Resources`.
    """
    entry = task.manifest.profiles[profile]
    if gpus is not None:
        used = len(gpus.other if entry.parallel else gpus.timed)
    else:  # on this machine the first that CUDA shows, unless a type is named
        used = max(1, pool.gpus) if entry.device == "cuda" and (pool.remote or gpu_type) else 0
    return Resources(
        cores=pool.cores / jobs,
        gpus=1 / math.ceil(jobs / used) if used else 0,
        gpu_type=gpu_type if used else None,
        own_cores=entry.parallel,
    )


def conditions(pool: Pool, task: Task, profile: str) -> Conditions | None:
    """Return what each scoring has to check first; None where all run on this machine."""
    return Conditions.of(task, profile) if pool.remote else None
