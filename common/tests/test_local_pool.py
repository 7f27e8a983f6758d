"""The local pool: jobs start in turn when what they need is free, and all end with the block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import pytest

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import StoppedError, raise_if_stop_requested, run_program
from re_bench.runs.local_pool import LocalPool
from re_bench.runs.pool import Resources, job_gpus, open_pool

WAIT_S = 60


def test_results_and_errors_are_the_futures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})

    def fails(text: str) -> None:
        raise ReBenchError(text)

    with open_pool() as pool:
        assert pool.cores == 2
        results = [pool.submit(pow, base, 2) for base in range(20)]
        failed = pool.submit(fails, "of the job")
    assert [future.result() for future in results] == [base**2 for base in range(20)]
    with pytest.raises(ReBenchError, match="of the job"):
        failed.result()


class Gate:
    """Jobs that say when they start and end when they are told to."""

    def __init__(self) -> None:
        self.open: dict[str, threading.Event] = {}
        self.started: list[str] = []
        self.gpus: dict[str, tuple[str, ...]] = {}
        self.changed = threading.Condition()

    def job(self, name: str) -> str:
        with self.changed:
            self.started.append(name)
            self.gpus[name] = job_gpus()
            self.changed.notify_all()
        assert self.open.setdefault(name, threading.Event()).wait(WAIT_S)
        return name

    def end(self, *names: str) -> None:
        for name in names:
            self.open.setdefault(name, threading.Event()).set()

    def wait(self, *names: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: set(names) <= set(self.started), WAIT_S), self.started


def test_a_large_job_is_not_overtaken_by_those_that_would_keep_it_waiting() -> None:
    pool, gate = LocalPool(cores=[0, 1, 2, 3], gpus=["GPU-a"]), Gate()
    submit = partial(pool.submit, gate.job)
    first = submit("first", resources=Resources(cores=2, gpus=1))
    gate.wait("first")
    submit("large", resources=Resources(cores=3))
    submit("small")  # would fit, but is one of the cores that the large one waits for
    first_on_gpu = submit("on the gpu", resources=Resources(cores=1, gpus=1))
    assert gate.started == ["first"]
    gate.end("first")
    assert first.result(WAIT_S) == "first"
    gate.wait("large", "small")
    assert gate.started[0] == "first"
    assert sorted(gate.started[1:]) == ["large", "small"]  # at the same time
    gate.end("large", "small", "on the gpu")
    assert first_on_gpu.result(WAIT_S)
    pool.wait()
    assert gate.gpus == {"first": ("GPU-a",), "large": (), "small": (), "on the gpu": ("GPU-a",)}


def test_a_job_that_waits_for_a_gpu_lets_others_have_the_cores() -> None:
    pool, gate = LocalPool(cores=[0, 1, 2], gpus=["GPU-a", "GPU-b"]), Gate()
    half, whole = Resources(cores=0.5, gpus=0.5), Resources(cores=0.5, gpus=1)
    for name in ("a", "b"):
        pool.submit(gate.job, name, resources=half)
    gate.wait("a", "b")
    assert {gate.gpus["a"], gate.gpus["b"]} == {("GPU-a",), ("GPU-b",)}
    pool.submit(gate.job, "whole", resources=whole)
    pool.submit(gate.job, "half", resources=half)
    pool.submit(gate.job, "no gpu")
    gate.wait("no gpu")
    assert sorted(gate.started) == ["a", "b", "no gpu"]
    gate.end("b")
    gate.wait("whole", "half")
    assert gate.gpus["whole"] == gate.gpus["b"]
    assert gate.gpus["half"] == gate.gpus["a"]
    gate.end(*gate.started)
    pool.wait()


def test_what_no_machine_has_is_refused_at_once() -> None:
    pool = LocalPool(cores=[0, 1], gpus=["GPU-a"])
    for resources, message in (
        (Resources(cores=3), "a job needs 3 cores; this machine has 2"),
        (Resources(gpus=2), "a job needs 2 GPUs; this machine has 1"),
        (Resources(memory_mib=1 << 40), "MiB of memory; this machine has"),
    ):
        with pytest.raises(UsageError, match=message):
            pool.submit(int, resources=resources)
    for wrong in ({"cores": 0}, {"gpus": 1.5}, {"memory_mib": -1}):
        with pytest.raises(ValueError, match="no job can need"):
            Resources(**wrong)


def test_own_cores_are_apart_and_inherited_by_programs() -> None:
    cores = sorted(os.sched_getaffinity(0))
    pool = LocalPool()
    program = ["-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    own = Resources(own_cores=True)
    futures = [pool.submit(partial(run_program, capture=True), program, resources=own) for _ in cores]
    used = [future.result(WAIT_S)[1] for future in futures]
    assert sorted(used) == sorted(f"[{core}]\n".encode() for core in cores)
    assert sorted(os.sched_getaffinity(0)) == cores
    pool.wait()


def test_an_error_of_the_block_ends_what_runs_and_starts_nothing_more() -> None:
    started: list[int] = []

    def job(number: int) -> None:
        started.append(number)
        while True:
            raise_if_stop_requested()
            time.sleep(0.01)

    whole = Resources(cores=len(os.sched_getaffinity(0)))
    futures = []
    with suppress(KeyError), open_pool() as pool:
        futures += [pool.submit(job, number, resources=whole) for number in range(3)]
        while not started:
            time.sleep(0.01)
        raise KeyError
    assert started == [0]
    assert isinstance(futures[0].exception(), StoppedError)
    assert [future.cancelled() for future in futures] == [False, True, True]


def test_a_waiting_job_can_be_cancelled() -> None:
    pool, gate = LocalPool(cores=[0]), Gate()
    pool.submit(gate.job, "first")
    second, third = pool.submit(gate.job, "second"), pool.submit(gate.job, "third")
    assert second.cancel()
    gate.end("first", "third")
    assert third.result(WAIT_S) == "third"
    pool.wait()
    assert gate.started == ["first", "third"]


STOPPED = """
import sys
from re_bench.processes import cli_entry_point, run_program
from re_bench.runs.pool import open_pool
with cli_entry_point("test"), open_pool() as pool:
    for _ in range(2 * pool.cores):
        future = pool.submit(lambda: run_program(["-c", "import os, time; os.write(1, bytes([49, 10])); time.sleep(99)"], capture=False))
    {leave}
"""  # noqa: E501


@pytest.mark.parametrize("leave", ["pass", "future.result()"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_programs_also_while_the_block_waits_at_its_end(leave: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", STOPPED.format(leave=leave)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        assert process.stderr is not None
        for _ in os.sched_getaffinity(0):
            assert process.stderr.readline() == b"1\n"
        process.send_signal(number)
        assert process.stderr.read() == b""  # all that had it open have ended
    assert process.returncode == 128 + number
