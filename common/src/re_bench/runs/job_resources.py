"""What the scorings of a command need of a machine to disturb no measurement, and what nodes must have in common."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

from re_bench.data.provenance import versions
from re_bench.errors import UsageError
from re_bench.runs.executor import Executor, Resources
from re_bench.task.choices import instance_of
from re_bench.task.discovery import TaskFolder, open_task
from re_bench.task.prepare import run_preparation

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.gpu.devices import GpuPlan

_WAITING_FOR_GPU = 2
"""Scorings that may start while another holds a GPU."""


def default_jobs(task: TaskFolder, profile: str, gpus: GpuPlan | None = None, executor: Executor | None = None) -> int:
    """Return how many scorings to run at a time on a machine: this one, or one of the executor's.

    On each GPU a few start while one is timed, since a GPU has a lock, if there are enough cores not to disturb it.
    Elsewhere as many as we have cores where the manifest says ``parallel``, else one.
    """
    cores = executor.cores if executor else len(os.sched_getaffinity(0))
    entry = task.manifest.profiles[profile]
    if entry.device != "cuda":
        return cores if entry.parallel else 1
    if executor is not None and executor.remote:
        used = max(1, executor.gpus)
    else:
        used = len(gpus.other if entry.parallel else gpus.timed) if gpus else 1
    return min((_WAITING_FOR_GPU + 1) * used, max(1, cores // 4))


def resources_per_job(
    executor: Executor,
    task: TaskFolder,
    profile: str,
    jobs: int | None = None,
    *,
    gpus: GpuPlan | None = None,
    gpu_type: str | None = None,
) -> Resources:
    """Return what one of ``jobs`` scorings at a time gets of a machine: its part of the cores and GPUs.

    Args:
        executor: where they run.
        task: the task.
        profile: a profile's own name.
        jobs: how many run on a machine at a time; None for one, or where the manifest says ``parallel`` as many as
            :func:`default_jobs` says.
        gpus: those of this machine, if its scorings are to be dealt out among them.
        gpu_type: as in :class:`re_bench.runs.executor.Resources`.
    """
    entry = task.manifest.profiles[profile]
    if jobs is None:
        jobs = default_jobs(task, profile, None, executor) if entry.parallel else 1
    if gpus is not None:
        used = len(gpus.other if entry.parallel else gpus.timed)
    else:  # on this machine the first that CUDA shows, unless a type is named
        used = max(1, executor.gpus) if entry.device == "cuda" and (executor.remote or gpu_type) else 0
    return Resources(
        cores=executor.cores / jobs, gpus=1 / math.ceil(jobs / used) if used else 0, gpu_type=gpu_type if used else None
    )


@dataclass(frozen=True)
class NodeRequirements:
    """What scores of one command depend on, which must be the same on all nodes. Paths are the same on all."""

    directory: Path
    """The task's."""
    profile: str
    known: tuple[tuple[str, str], ...]
    """By what it is: the versions of packages, the manifest, the instance."""

    @classmethod
    def of(cls, executor: Executor, task: TaskFolder, profile: str) -> Self | None:
        """Return those of this machine; None where all jobs run on it."""
        return cls(task.directory, profile, _facts(task.directory, profile)) if executor.remote else None

    def check(self, submission: Path | None = None) -> None:
        """Prepare the task on this node, once, and check that it is here as where this was made.

        Args:
            submission: a directory that must be here, too.

        Raises:
            UsageError: if something differs, or the profile cannot be prepared here.
            ReBenchError: if preparing fails.
        """
        if submission is not None and not submission.is_dir():
            raise UsageError(f"node {platform.node()} does not see {submission}; put it where all nodes do")
        _check(self)


def _facts(directory: Path, profile: str) -> tuple[tuple[str, str], ...]:
    task = open_task(directory)  # without an operator's choice of a model
    manifest = hashlib.sha256(task.manifest.model_dump_json().encode()).hexdigest()[:12]
    return (
        *sorted(versions().items()),
        ("the task's manifest", manifest),
        ("the task's instance", str(instance_of(task, profile))),
    )


@cache
def _check(expected: NodeRequirements) -> None:
    here = dict(_facts(expected.directory, expected.profile))
    for name, value in expected.known:
        if here.get(name) != value:
            raise UsageError(
                f"node {platform.node()} differs in {name}: {here.get(name, '(none)')} there, {value} on this machine; "
                "give all nodes the same packages and checkout, and the same file instance.secret in RE_BENCH_CACHE"
            )
    run_preparation(open_task(expected.directory), expected.profile)
