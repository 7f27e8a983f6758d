"""Jobs on a Ray cluster; with ``ray_job`` the only module that knows Ray, which is the extra ``ray``.

A job is a task of Ray that is tried once. One that is lost with its node or process is submitted again here, so that
the bound and the message are ours; an exception of the job travels back as its result, and is not tried again.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from re_bench.data.instances import pinned_instances
from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import print_progress
from re_bench.runs.local_pool import ONE_CORE, Pool, Resources
from re_bench.runs.ray_job import run_job

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


@dataclass(frozen=True)
class _Submitted:
    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    resources: Resources
    tries: int = 1


class RayPool(Pool):
    """The pool of a cluster, to which this process is connected."""

    def __init__(self, address: str) -> None:
        """Connect to it.

        Raises:
            UsageError: if Ray is not installed, or there is no cluster of our versions at ``address``.
        """
        self._ray = _connect(address)
        self._nodes = self._alive()
        if not self.cores:
            raise UsageError(f"--ray {address}: no node of the cluster has any cores to give")
        self._submitted: dict[Any, _Submitted] = {}
        """By the reference to the result."""
        self._run = self._ray.remote(run_job)
        self._changed = threading.Condition()
        self._closed = False
        self._loss: ReBenchError | None = None
        """Why nothing can run any more."""
        self._watcher = threading.Thread(target=self._watch, name="re-bench-ray", daemon=True)
        self._watcher.start()

    @property
    def cores(self) -> int:
        """Those of the largest node when we connected."""
        return int(max((node.get("CPU", 0) for node in self._nodes), default=0))

    @property
    def gpus(self) -> int:
        """The most that a node had when we connected."""
        return int(max((node.get("GPU", 0) for node in self._nodes), default=0))

    @property
    def remote(self) -> bool:
        """Always, even on a cluster of this machine alone."""
        return True

    def submit(self, function: Callable[..., T], *arguments: Any, resources: Resources = ONE_CORE) -> Future[T]:
        """Submit it to the cluster, whose scheduler decides when and where it runs."""
        if self._loss is not None:
            raise self._loss
        if not any(_fits(resources, node) for node in self._nodes):
            self._nodes = self._alive()
            if not any(_fits(resources, node) for node in self._nodes):
                raise UsageError(f"no node of the cluster has what a job needs: {_describe(resources)}")
        future: Future[T] = Future()
        self._start(_Submitted(future, function, arguments, resources))
        return future

    def wait(self) -> None:
        """Wait until all jobs have ended, and disconnect."""
        with self._changed:
            self._changed.wait_for(lambda: not self._submitted)
        self._end_watch()
        self._ray.shutdown()

    def stop(self) -> None:
        """End what runs on all nodes, start nothing more, and disconnect."""
        self._end_watch()  # which may have been about to submit a lost job again
        for reference, job in self._submitted.items():
            self._ray.cancel(reference, force=False)
            if job.future.cancel():
                job.future.set_running_or_notify_cancel()
        if self._submitted:
            self._ray.wait(list(self._submitted), num_returns=len(self._submitted), timeout=_STOP_S)
        self._ray.shutdown()

    def _end_watch(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._watcher.join()

    def _alive(self) -> list[Mapping[str, float]]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _start(self, job: _Submitted) -> None:
        options = {
            "name": "re-bench",  # which stands before each line of its stderr
            "num_cpus": _rounded_down(job.resources.cores),
            "num_gpus": _rounded_down(job.resources.gpus),
            "memory": job.resources.memory_mib * _MIB or None,
            "accelerator_type": job.resources.gpu_type,
            "max_retries": 0,
            "retry_exceptions": False,
            "scheduling_strategy": "SPREAD",
        }
        with self._changed:
            reference = self._run.options(**options).remote(job.function, job.arguments, job.resources)
            self._submitted[reference] = job
            self._changed.notify_all()

    def _watch(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._submitted or self._closed)
                if self._closed:
                    return
                submitted = dict(self._submitted)
            try:
                for reference, job in submitted.items():
                    if job.future.cancelled():
                        self._ray.cancel(reference, force=False)
                ended, _others = self._ray.wait(list(submitted), num_returns=1, timeout=_POLL_S)
            except self._ray.exceptions.RayError as fault:
                self._loss = ReBenchError(f"the Ray cluster is lost: {fault}")
                for reference, job in submitted.items():
                    self._finish(reference, job, None, self._loss)
                return
            for reference in ended:
                self._settle(reference, submitted[reference])

    def _settle(self, reference: Any, job: _Submitted) -> None:
        """Hand on the result of a job that has ended, or submit it again if it was lost."""
        errors = self._ray.exceptions
        lost = (errors.NodeDiedError, errors.WorkerCrashedError, errors.OutOfMemoryError, errors.ObjectLostError)
        result, error = None, None
        try:
            result, error = self._ray.get(reference)
        except lost as fault:
            line = next(iter(str(fault).strip().splitlines()), type(fault).__name__)
            if job.tries < _TRIES and not job.future.cancelled():
                print_progress(f"Ray lost a job ({line}); it is submitted again, try {job.tries + 1} of {_TRIES}")
                self._start(replace(job, tries=job.tries + 1))
                self._forget(reference)
                return
            error = ReBenchError(f"Ray lost a job {job.tries} times: {line}")
        except errors.RayError as fault:
            error = ReBenchError(f"Ray could not run a job: {fault}")
        self._finish(reference, job, result, error)

    def _finish(self, reference: Any, job: _Submitted, result: Any, error: BaseException | None) -> None:
        """Tell whoever waits for a job, unless it was cancelled."""
        if job.future.set_running_or_notify_cancel():
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)
        self._forget(reference)

    def _forget(self, reference: Any) -> None:
        with self._changed:
            del self._submitted[reference]
            self._changed.notify_all()


def _connect(address: str) -> Any:
    if "://" in address:
        raise UsageError(f"--ray {address}: run this on a node of the cluster, with --ray auto (`ray job submit` does)")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # equal lines of two jobs are two lines
    os.environ.setdefault("RAY_COLOR_PREFIX", str(int(sys.stderr.isatty())))
    try:
        import ray  # noqa: PLC0415 - of the extra `ray`
        import ray.exceptions  # noqa: PLC0415
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
