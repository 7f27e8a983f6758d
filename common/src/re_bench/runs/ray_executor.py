"""Jobs on a Ray cluster; the only module that knows Ray, which is the extra ``ray``.

A job is a task of Ray, which Ray runs again where its node or process is lost. An exception of the job travels back as
its result, and is no reason to run it again.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from re_bench.data.instances import pinned_instances
from re_bench.errors import ReBenchError, UsageError
from re_bench.runs.local_executor import ONE_CORE, Executor, LocalExecutor, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_TRIES = 3
"""Of a job whose node or process is lost."""
_POLL_S = 0.2
_CONNECT_S = 10.0
_STOP_S = 120.0
"""For jobs to end their programs, which get ten seconds, or a minute where they have records to finish."""
_PRECISION = 10_000
"""Ray's, of fractions of a resource."""
_MIB = 1 << 20
_INSTALL = "pip install -c constraints.txt -e 'common[ray]'"


class RayExecutor(Executor):
    """Runs jobs on the nodes of a cluster, to which this process is connected."""

    remote = True

    def __init__(self, address: str) -> None:
        """Connect to it.

        Raises:
            UsageError: if Ray is not installed, or there is no cluster of our versions at ``address``.
        """
        self._ray = _connect(address)
        self._nodes = self._alive()
        if not self.cores:
            raise UsageError(f"--ray {address}: no node of the cluster has any cores to give")
        self._run = self._ray.remote(run_job)
        self._submitted: dict[Future[Any], Any] = {}
        """The references to the results of jobs that have not ended."""
        self._lock = threading.Lock()

    @property
    def cores(self) -> int:
        """Those of the largest node when we connected."""
        return int(max((node.get("CPU", 0) for node in self._nodes), default=0))

    @property
    def gpus(self) -> int:
        """The most that a node had when we connected."""
        return int(max((node.get("GPU", 0) for node in self._nodes), default=0))

    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Submit it to the cluster, whose scheduler decides when and where it runs."""
        if not any(_fits(resources, node) for node in self._nodes):
            self._nodes = self._alive()
            if not any(_fits(resources, node) for node in self._nodes):
                raise UsageError(f"no node of the cluster has what a job needs: {_describe(resources)}")
        reference = self._run.options(
            name="re-bench",  # which stands before each line of its stderr
            num_cpus=_rounded_down(resources.cores),
            num_gpus=_rounded_down(resources.gpus),
            memory=resources.memory_mib * _MIB or None,
            accelerator_type=resources.gpu_type,
            max_retries=_TRIES - 1,
            retry_exceptions=False,
            scheduling_strategy="SPREAD",
        ).remote(function, arguments)
        future: Future[T] = Future()
        with self._lock:
            self._submitted[future] = reference
        reference.future().add_done_callback(partial(self._settle, future))
        return future

    def _settle(self, future: Future[Any], done: Future[tuple[Any, BaseException | None]]) -> None:
        """Set the result of a job that has ended; it may be the second time, where its node was lost afterwards."""
        with self._lock:
            if self._submitted.pop(future, None) is None:
                return
        fault = done.exception()
        result, error = done.result() if fault is None else (None, ReBenchError(_describe_fault(fault)))
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def wait(self) -> None:
        """Wait until all jobs have ended, and disconnect."""
        wait(self._unfinished())
        self._ray.shutdown()

    def stop(self) -> None:
        """End what runs on all nodes, start nothing more, and disconnect."""
        with self._lock:
            submitted, self._submitted = self._submitted, {}
        for future, reference in submitted.items():
            future.cancel()
            self._ray.cancel(reference, force=False)
        if submitted:
            self._ray.wait(list(submitted.values()), num_returns=len(submitted), timeout=_STOP_S)
        self._ray.shutdown()

    def _unfinished(self) -> list[Future[Any]]:
        with self._lock:
            return list(self._submitted)

    def _alive(self) -> list[Mapping[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]


def run_job(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """Run a job on a node, and return its result and its exception.

    It has a thread: Ray cancels it by an interrupt of the main one, which may come between any two instructions.
    """
    import ray  # noqa: PLC0415 - of the extra `ray`

    gpus = [str(gpu) for gpu in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]
    with LocalExecutor(gpus) as executor:
        everything = Resources(cores=executor.cores, gpus=len(gpus))
        future = executor.submit(function, *arguments, resources=everything)
        while not wait([future], _POLL_S).done:
            time.sleep(0)  # an interrupt is raised here at the latest
    error = future.exception()
    if error is not None and error.__traceback__ is not None:
        error.add_note(f"on node {platform.node()}")
    return (future.result(), None) if error is None else (None, error)


def _connect(address: str) -> Any:
    if "://" in address:
        raise UsageError(f"--ray {address}: run this on a node of the cluster, with --ray auto (`ray job submit` does)")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # equal lines of two jobs are two lines
    os.environ.setdefault("RAY_COLOR_PREFIX", str(int(sys.stderr.isatty())))
    os.environ.setdefault("RAY_task_oom_retries", str(_TRIES - 1))  # which Ray counts apart, without end by default
    try:
        import ray  # noqa: PLC0415 - of the extra `ray`
    except ModuleNotFoundError:
        raise UsageError(f"--ray needs the package ray; run: {_INSTALL}") from None
    _check_listening(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": pinned_instances()},  # instances that are chosen here are chosen there
            logging_level="warning",
            configure_logging=True,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(f"--ray {address}: {next(iter(str(error).splitlines()), 'no cluster')}") from None
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)  # Ray has put its own in their place
    return ray


def _check_listening(address: str) -> None:
    """Raise if nothing listens at ``HOST:PORT``, to which Ray would try to connect for minutes.

    Raises:
        UsageError: if so.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"--ray {address}: there is no cluster: {error}") from None


def _rounded_down(number: float) -> float:
    return int(number * _PRECISION) / _PRECISION


def _fits(resources: Resources, node: Mapping[str, float]) -> bool:
    kind = f"accelerator_type:{resources.gpu_type}"
    return (
        _rounded_down(resources.cores) <= node.get("CPU", 0)
        and _rounded_down(resources.gpus) <= node.get("GPU", 0)
        and resources.memory_mib * _MIB <= node.get("memory", 0)
        and (resources.gpu_type is None or kind in node)
    )


def _describe(resources: Resources) -> str:
    parts = [f"{resources.cores:g} cores"]
    parts += [f"{resources.gpus:g} GPUs"] if resources.gpus else []
    parts += [f"of type {resources.gpu_type}"] if resources.gpu_type else []
    parts += [f"{resources.memory_mib} MiB of memory"] if resources.memory_mib else []
    return ", ".join(parts)


def _describe_fault(fault: BaseException) -> str:
    line = next(iter(str(fault).strip().splitlines()), type(fault).__name__)
    return f"Ray could not run a job, which is tried {_TRIES} times where its node is lost: {line}"
