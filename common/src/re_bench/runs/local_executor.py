"""What runs jobs that supervise programs: the interface, and its implementation on this machine."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from re_bench.errors import UsageError
from re_bench.gpu import state as gpu_state
from re_bench.processes import request_stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

_CGROUP_MEMORY = Path("/sys/fs/cgroup/memory.max")
_EPSILON = 1e-6
"""For sums of shares such as a third."""
_MOST_THREADS = 1024
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

    def __post_init__(self) -> None:
        whole = self.gpus < 1 or self.gpus == int(self.gpus)
        if self.cores <= 0 or self.memory_mib < 0 or self.gpus < 0 or not whole:
            raise ValueError(f"no job can need {self}")


ONE_CORE = Resources()


class Executor(ABC):
    """Runs jobs; :func:`re_bench.runs.executor.open_executor` makes one.

    Its ``with`` block ends when all jobs have. If the block is left by an exception, an interrupt or a signal (see
    :func:`re_bench.processes.cli_entry_point`), what runs is ended and nothing more is started.
    """

    remote: bool
    """Whether jobs run on other machines, with which we share no more than a file system."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many cores a job can have: those of the machine, or of the largest in a cluster."""

    @property
    @abstractmethod
    def gpus(self) -> int:
        """How many GPUs a job can have, on one machine."""

    @abstractmethod
    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Call ``function(*arguments)`` when its resources are free.

        An exception of the job, of any class, is its future's, and no reason to try it again. The programs that it
        starts have to end when :func:`re_bench.processes.stop_requested`.

        Args:
            function: what can be pickled, as its arguments and its result.
            arguments: of the function.
            resources: what it needs.

        Raises:
            UsageError: if there is no machine that has as much.
        """

    @abstractmethod
    def wait(self) -> None:
        """Wait until all jobs have ended."""

    @abstractmethod
    def stop(self) -> None:
        """End what runs, and start nothing more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.stop()
            return
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise


def job_gpus() -> tuple[str, ...]:
    """Return the GPUs that the job in this thread has, for :func:`re_bench.gpu.devices.only_gpus`.

    They are what ``CUDA_VISIBLE_DEVICES`` takes: UUIDs on this machine, numbers on a node of Ray. None outside of jobs.
    """
    gpus: tuple[str, ...] = getattr(_this_job, "gpus", ())
    return gpus


@dataclass
class _Job:
    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    resources: Resources
    cores: Sequence[int] = ()
    """Those that it has while it runs, by number."""
    gpus: tuple[str, ...] = ()
    """Likewise."""


class LocalExecutor(Executor):
    """Runs jobs in threads of this process, in the order in which they come, each as soon as its resources are free.

    The programs of a job run on as many cores as it has: else each would start a thread for every core of the machine.
    """

    remote = False

    def __init__(self, gpus: Sequence[str] | None = None, cores: Iterable[int] | None = None) -> None:
        """Start nothing yet.

        Args:
            gpus: those that jobs may have, as ``CUDA_VISIBLE_DEVICES`` takes them; None for all that CUDA shows.
            cores: likewise, by number; None for all that we may run on.
        """
        self._loads = dict.fromkeys(sorted(os.sched_getaffinity(0) if cores is None else cores), 0.0)
        """What jobs have of each core."""
        self._memory = machine_memory_mib()
        self._free_cores, self._free_memory = float(len(self._loads)), self._memory
        self._free_gpus = None if gpus is None else dict.fromkeys(gpus, 1.0)
        """What is free of each; None until a job asks for one."""
        self._waiting: deque[_Job] = deque()
        self._futures: list[Future[Any]] = []
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "re-bench-job")
        self._lock = threading.Lock()

    @property
    def cores(self) -> int:
        """Those of the machine that we may run on."""
        return len(self._loads)

    @property
    def gpus(self) -> int:
        """Those that jobs may have."""
        return len(self._gpus_of_type(None))

    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Start it in a thread when its resources are free, as :meth:`Executor.submit`."""
        self._check(resources)
        future: Future[T] = Future()
        with self._lock:
            self._futures.append(future)
            self._waiting.append(_Job(future, function, arguments, resources))
            self._start_ready()
        return future

    def wait(self) -> None:
        """Wait until all jobs have ended."""
        wait(self._futures)
        self._threads.shutdown()

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
        with request_stop():
            self._threads.shutdown()

    def _check(self, resources: Resources) -> None:
        gpus = len(self._gpus_of_type(resources.gpu_type)) if resources.gpus else 0
        kind = f" {resources.gpu_type}" if resources.gpu_type else ""
        for needed, present, what in (
            (resources.cores, self.cores, "cores"),
            (resources.memory_mib, self._memory, "MiB of memory"),
            (resources.gpus, gpus, f"GPUs{kind}"),
        ):
            if needed > present + _EPSILON:
                raise UsageError(f"a job needs {needed:g} {what}; this machine has {present}")

    def _gpus_of_type(self, kind: str | None) -> dict[str, float]:
        """Return what is free of each GPU of this type."""
        if self._free_gpus is None:
            self._free_gpus = {gpu.uuid: 1.0 for gpu in gpu_state.identify_all()}
        if kind is None:
            return self._free_gpus
        of_type = {gpu.uuid for gpu in gpu_state.identify_all() if kind.lower() in gpu.name.lower()}
        return {uuid: free for uuid, free in self._free_gpus.items() if uuid in of_type}

    def _start_ready(self) -> None:
        """Start the first jobs that wait, as far as there is room: none is overtaken by a later one."""
        while self._waiting:
            job, needed = self._waiting[0], self._waiting[0].resources
            gpus = self._choose_gpus(needed)
            if needed.cores > self._free_cores + _EPSILON or needed.memory_mib > self._free_memory or gpus is None:
                return
            self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                count = max(1, int(needed.cores + _EPSILON))
                job.cores, job.gpus = sorted(self._loads, key=self._loads.__getitem__)[:count], gpus
                self._count(job, -1)
                self._threads.submit(self._run, job)

    def _choose_gpus(self, needed: Resources) -> tuple[str, ...] | None:
        """Return GPUs that are free enough, the freest first; None where there are not enough."""
        if not needed.gpus:
            return ()
        count, share = max(1, int(needed.gpus)), min(1.0, needed.gpus)
        free = self._gpus_of_type(needed.gpu_type)
        enough = sorted((uuid for uuid in free if free[uuid] >= share - _EPSILON), key=lambda uuid: -free[uuid])
        return tuple(enough[:count]) if len(enough) >= count else None

    def _count(self, job: _Job, sign: int) -> None:
        """Take what a job has away from what is free, or, with the sign +1, give it back."""
        self._free_cores += sign * job.resources.cores
        self._free_memory += sign * job.resources.memory_mib
        for core in job.cores:
            self._loads[core] -= sign * job.resources.cores / len(job.cores)
        for uuid in job.gpus:
            assert self._free_gpus is not None
            self._free_gpus[uuid] += sign * min(1.0, job.resources.gpus)

    def _run(self, job: _Job) -> None:
        _this_job.gpus = job.gpus
        result, error = None, None
        try:
            with suppress(OSError):  # where these cores were taken from us meanwhile, any will do
                os.sched_setaffinity(0, job.cores)  # of this thread; programs that it starts inherit it
            result = job.function(*job.arguments)
        except BaseException as raised:  # noqa: BLE001 - StoppedError too, which is for whoever waits
            error = raised
        with self._lock:
            self._count(job, +1)
            self._start_ready()
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def machine_memory_mib() -> int:
    """Return the machine's memory, or that of our container where it is less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        memory = min(memory, int(_CGROUP_MEMORY.read_text(encoding="ascii")))
    return memory >> 20
