"""Jobs on this machine: each is a thread that supervises programs, started when what it needs is free."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from re_bench.errors import UsageError
from re_bench.gpu import state as gpu_state
from re_bench.processes import request_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")
_EPSILON = 1e-6
"""For sums of shares such as a third."""
_this_job = threading.local()


@dataclass(frozen=True)
class Resources:
    """What a job needs while it runs."""

    cores: float = 1
    """More than 0. The rest of a core may go to other jobs."""
    memory_mib: int = 0
    """0: not counted."""
    gpus: float = 0
    """A whole number, or less than 1 for a job that shares a GPU with others."""
    gpu_type: str | None = None
    """Part of the GPU's name, such as ``H200``; on Ray the accelerator type of the node. None: any."""
    own_cores: bool = False
    """Whether the programs that it runs get cores of their own, as far as whole cores allow: else every one starts as
    many threads as the machine has cores, and together they wait for each other."""

    def __post_init__(self) -> None:
        whole = self.gpus < 1 or self.gpus == int(self.gpus)
        if self.cores <= 0 or self.memory_mib < 0 or self.gpus < 0 or not whole:
            raise ValueError(f"no job can need {self}")


ONE_CORE = Resources()


class Pool(ABC):
    """Where jobs run; made by :func:`re_bench.runs.pool.open_pool`."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many cores a job can have: those of the machine, or of the largest in a cluster."""

    @property
    @abstractmethod
    def gpus(self) -> int:
        """How many GPUs a job can have, on one machine."""

    @property
    @abstractmethod
    def remote(self) -> bool:
        """Whether jobs run on other machines, with which we share no more than a file system."""

    @abstractmethod
    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Call ``function(*arguments)`` when its resources are free; whoever came first is not overtaken for long.

        An exception of the job is its future's, whatever its class; nothing is tried again because of it. A job that
        waits can be cancelled by its future. What it starts has to end when :func:`re_bench.processes.stop_requested`.

        Args:
            function: what can be pickled, as its arguments and its result.
            arguments: of the function.
            resources: what it needs.

        Raises:
            UsageError: if there is no machine that has as much.
            ReBenchError: if the cluster is lost.
        """


def job_gpus() -> tuple[str, ...]:
    """Return the GPUs that the job in this thread has, for :func:`re_bench.gpu.devices.only_gpus`.

    They are what ``CUDA_VISIBLE_DEVICES`` takes: UUIDs on this machine, numbers on a node of Ray. None outside of jobs.
    """
    gpus: tuple[str, ...] = getattr(_this_job, "gpus", ())
    return gpus


@dataclass(frozen=True)
class _Job:
    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    resources: Resources


@dataclass(frozen=True)
class _Share:
    """What a running job has."""

    cores: tuple[int, ...]
    """By number, if they are its own."""
    gpus: tuple[str, ...]


class LocalPool(Pool):
    """The pool of this machine."""

    def __init__(self, gpus: Sequence[str] | None = None, cores: Sequence[int] | None = None) -> None:
        """Nothing runs yet.

        Args:
            gpus: those that jobs may have, as UUIDs; None for all that CUDA shows.
            cores: likewise, by number; None for all that we may run on.
        """
        self._cores = dict.fromkeys(sorted(os.sched_getaffinity(0)) if cores is None else cores, 0.0)
        """How much of each is somebody's own."""
        self._free_cores, self._free_memory = float(len(self._cores)), machine_memory_mib()
        self._memory = self._free_memory
        self._gpus = None if gpus is None else dict.fromkeys(gpus, 1.0)
        """What is free of each; None until somebody asks."""
        self._waiting: deque[_Job] = deque()
        self._running: set[threading.Thread] = set()
        self._changed = threading.Condition()

    @property
    def cores(self) -> int:
        """Those of the machine that we may run on."""
        return len(self._cores)

    @property
    def gpus(self) -> int:
        """Those that jobs may have."""
        return len(self._free_gpus(None))

    @property
    def remote(self) -> bool:
        """Never."""
        return False

    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Start it in a thread when its resources are free, as :meth:`Pool.submit`."""
        self._check(resources)
        future: Future[T] = Future()
        with self._changed:
            self._waiting.append(_Job(future, function, arguments, resources))
            self._start_ready()
        return future

    def wait(self) -> None:
        """Wait until all jobs have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._running)

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._changed:
            waiting, running = tuple(self._waiting), tuple(self._running)
            self._waiting.clear()
        for job in waiting:
            if job.future.cancel():
                job.future.set_running_or_notify_cancel()
        with request_stop():
            for thread in running:
                thread.join()

    def _check(self, resources: Resources) -> None:
        gpus = len(self._free_gpus(resources.gpu_type)) if resources.gpus else 0
        kind = f" {resources.gpu_type}" if resources.gpu_type else ""
        for needed, present, what in (
            (resources.cores, self.cores, "cores"),
            (resources.memory_mib, self._memory, "MiB of memory"),
            (resources.gpus, gpus, f"GPUs{kind}"),
        ):
            if needed > present + _EPSILON:
                raise UsageError(f"a job needs {needed:g} {what}; this machine has {present}")

    def _free_gpus(self, kind: str | None) -> dict[str, float]:
        """Return what is free of each GPU of this kind."""
        if self._gpus is None:
            self._gpus = {gpu.uuid: 1.0 for gpu in gpu_state.identify_all()}
        if kind is None:
            return self._gpus
        of_kind = {gpu.uuid for gpu in gpu_state.identify_all() if kind.lower() in gpu.name.lower()}
        return {uuid: free for uuid, free in self._gpus.items() if uuid in of_kind}

    def _start_ready(self) -> None:
        """Start what can be started. What cannot keeps the next ones from what it waits for."""
        kept_cores, kept_memory, gpus_kept = 0.0, 0, False
        for job in tuple(self._waiting):
            needed = job.resources
            if job.future.cancelled():
                self._waiting.remove(job)
                job.future.set_running_or_notify_cancel()
                continue
            enough = needed.cores <= self._free_cores - kept_cores + _EPSILON
            enough = enough and needed.memory_mib <= self._free_memory - kept_memory
            gpus = () if gpus_kept and needed.gpus else self._choose_gpus(needed)
            if enough and gpus is not None and bool(gpus) == bool(needed.gpus):
                self._waiting.remove(job)
                if job.future.set_running_or_notify_cancel():
                    self._start(job, gpus)
                continue
            kept_cores, kept_memory = kept_cores + needed.cores, kept_memory + needed.memory_mib
            gpus_kept = gpus_kept or bool(needed.gpus)
            if kept_cores >= self._free_cores:
                break

    def _choose_gpus(self, needed: Resources) -> tuple[str, ...] | None:
        """Return GPUs that are free enough, the freest first; None where there are not enough."""
        if not needed.gpus:
            return ()
        count, share = max(1, int(needed.gpus)), min(1.0, needed.gpus)
        free = self._free_gpus(needed.gpu_type)
        enough = sorted((uuid for uuid in free if free[uuid] >= share - _EPSILON), key=lambda uuid: -free[uuid])
        return tuple(enough[:count]) if len(enough) >= count else None

    def _start(self, job: _Job, gpus: tuple[str, ...]) -> None:
        count = max(1, int(job.resources.cores + _EPSILON))
        cores = sorted(self._cores, key=lambda core: self._cores[core])[:count] if job.resources.own_cores else []
        share = _Share(tuple(cores), gpus)
        self._count(job.resources, share, -1)
        thread = threading.Thread(target=self._run, args=(job, share), name="re-bench-job")
        self._running.add(thread)
        thread.start()

    def _count(self, resources: Resources, share: _Share, sign: int) -> None:
        """Take a share away from what is free, or, with the sign +1, give it back."""
        self._free_cores += sign * resources.cores
        self._free_memory += sign * resources.memory_mib
        for core in share.cores:
            self._cores[core] -= sign * resources.cores / len(share.cores)
        for uuid in share.gpus:
            assert self._gpus is not None
            self._gpus[uuid] += sign * min(1.0, resources.gpus)

    def _run(self, job: _Job, share: _Share) -> None:
        _this_job.gpus = share.gpus
        result, error = None, None
        try:
            if share.cores:
                os.sched_setaffinity(0, share.cores)  # of this thread; programs that it starts inherit them
            result = job.function(*job.arguments)
        except BaseException as raised:  # noqa: BLE001 - StoppedError too, which is for whoever waits
            error = raised
        with self._changed:
            self._count(job.resources, share, +1)
            self._start_ready()
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
        with self._changed:
            self._running.discard(threading.current_thread())
            self._changed.notify_all()


def machine_memory_mib() -> int:
    """Return the machine's memory, or that of our container where it is less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        memory = min(memory, int(_CGROUP_MEMORY.read_text(encoding="ascii")))
    return memory >> 20
