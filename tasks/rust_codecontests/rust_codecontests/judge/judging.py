"""Judge programs: compile each source, run its tests, and return a verdict."""

from __future__ import annotations

import math
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from re_bench.errors import ReBenchError
from re_bench.processes import raise_if_stop_requested, request_stop
from re_bench.sandbox import open_backend
from re_bench.sandbox.process import describe_exit
from rust_codecontests.judge.compiler import Compiler
from rust_codecontests.judge.runner import (
    CPU_TIME,
    HARNESS,
    LAST_TEST_S,
    WALL_CLOCK,
    Outcome,
    Runner,
    SandboxEndedError,
)
from rust_codecontests.judge.verdicts import Judgement, Limits, Test, Verdict, first_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.sandbox.spec import Backend

_HARNESS_S = 60.0
_HARNESS_EDITION = "2021"  # independent of the programs' edition
_NO_MEMORY = b"memory allocation of "  # message of Rust's standard library before it aborts
_STDERR_SHOWN = 500


class Judge:
    """Judge Rust programs in sandboxes; a context manager that caches compiled programs while it is open.

    Args:
        backend: the sandbox backend or its name; None for the default of :func:`re_bench.sandbox.open_backend`.
        edition: edition of Rust.
        cache: directory that keeps compiled programs for later judges; None for a directory that is removed at the end.
        jobs: number of programs that :meth:`judge_all` judges in parallel; None for one per available core.

    Raises:
        UsageError: if Rust or the sandbox is not available, or the edition is unknown.
    """

    def __init__(
        self,
        backend: Backend | str | None = None,
        edition: str = "2021",
        cache: Path | None = None,
        jobs: int | None = None,
    ) -> None:
        self._backend = open_backend(backend) if backend is None or isinstance(backend, str) else backend
        self._jobs = jobs or len(os.sched_getaffinity(0))
        with ExitStack() as stack:
            directory = cache or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="re-bench-judge-")))
            directory.mkdir(parents=True, exist_ok=True)
            self._compiler = Compiler(self._backend, edition, directory.resolve())
            # Compile the harness in the background, while the scorer collects answers.
            self._harness = stack.enter_context(ThreadPoolExecutor(1)).submit(self._compiled_harness)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def judge(
        self, source: str, tests: Sequence[Test], limits: Limits, public: int = 0, deadline: float = math.inf
    ) -> Judgement:
        """Compile one program, and run it on ``tests`` until the first failure.

        The time limit is a limit on CPU time; the wall-clock limit only stops programs that wait for something other
        than a core. A failed allocation or a peak above the limit gives the verdict "memory limit"; too much output is
        a runtime error.

        Args:
            source: the text of a Rust file that uses only the standard library.
            tests: the tests, in order.
            limits: the program's limits.
            public: number of leading tests whose details may be shown to the program's author.
            deadline: time by ``time.monotonic`` after which neither the compiler nor a test is started; a running test
                is stopped at most :data:`~rust_codecontests.judge.runner.LAST_TEST_S` seconds later.

        Raises:
            ReBenchError: if the harness does not compile.
        """
        raise_if_stop_requested()
        harness = self._harness.result()  # before the clock starts, so the program is not charged for the harness
        started = time.monotonic()
        if started > deadline:
            return Judgement(Verdict.NOT_JUDGED, None, Verdict.NOT_JUDGED, 0, 0.0, 0.0)
        compiled = self._compiler.compile(source, limits.compile_s)
        if compiled.program is None:
            return Judgement(Verdict.COMPILE_ERROR, None, compiled.message, 0, 0.0, time.monotonic() - started)
        if time.monotonic() > deadline:
            return Judgement(Verdict.NOT_JUDGED, None, Verdict.NOT_JUDGED, 0, 0.0, time.monotonic() - started)
        cpu_s, left_s = 0.0, limits.total_s
        with ExitStack() as stack:
            runner: Runner | None = None
            for number, test in enumerate(tests):
                runner = runner or stack.enter_context(
                    Runner(self._backend, harness, compiled.program, limits, len(tests))
                )
                verdict, reason, used_s, elapsed_s = _run(runner, test, limits, deadline)
                raise_if_stop_requested()
                cpu_s += used_s
                left_s -= max(used_s, elapsed_s)
                if verdict is Verdict.ACCEPTED and left_s < 0:
                    verdict, reason = Verdict.TOTAL_TIME_LIMIT, f"the tests so far took more than {limits.total_s:g} s"
                elif verdict is Verdict.ACCEPTED and number + 1 < len(tests) and time.monotonic() > deadline:
                    verdict = Verdict.NOT_JUDGED
                if verdict is not Verdict.ACCEPTED:
                    message = f"{verdict} on test {number + 1}" + (f": {reason}" if number < public else "")
                    return Judgement(verdict, number, message, number, cpu_s, time.monotonic() - started)
        return Judgement(Verdict.ACCEPTED, None, "accepted", len(tests), cpu_s, time.monotonic() - started)

    def compiles(self, source: str) -> bool:
        """Return whether a program compiles within the default limits."""
        raise_if_stop_requested()
        return self._compiler.compile(source, Limits.compile_s).program is not None

    def judge_all(
        self, programs: Sequence[tuple[str, Sequence[Test], Limits, int]], deadline: float = math.inf
    ) -> list[Judgement]:
        """Judge programs in parallel, and return the judgements in the same order.

        Each program is a tuple of the arguments ``source``, ``tests``, ``limits`` and ``public`` of :meth:`judge`.
        """

        def judged(program: tuple[str, Sequence[Test], Limits, int]) -> Judgement:
            source, tests, limits, public = program
            return self.judge(source, tests, limits, public, deadline)

        pool = ThreadPoolExecutor(self._jobs)
        try:
            judgements = list(pool.map(judged, programs))
        except BaseException:
            with request_stop():
                pool.shutdown(cancel_futures=True)
            raise
        pool.shutdown()
        return judgements

    def _compiled_harness(self) -> Path:
        harness = self._compiler.compile(HARNESS.read_text(encoding="utf-8"), _HARNESS_S, _HARNESS_EDITION)
        if harness.program is None:
            raise ReBenchError(f"the judge's own {HARNESS.name} does not compile here: {harness.message}")
        return harness.program


def _run(runner: Runner, test: Test, limits: Limits, deadline: float) -> tuple[Verdict, str, float, float]:
    """Return the verdict on one test, the reason for the verdict, and the CPU and wall-clock seconds used.

    The program's author may see the reason only if the test is public.
    """
    try:
        outcome = runner.run(test.input, deadline)
    except SandboxEndedError as error:
        reason = str(error)
        if time.monotonic() > deadline + LAST_TEST_S:
            return Verdict.NOT_JUDGED, reason, 0.0, 0.0
        if "memory" in reason:
            return Verdict.MEMORY_LIMIT, _too_much_memory(limits), 0.0, 0.0
        return Verdict.RUNTIME_ERROR, reason, 0.0, 0.0
    verdict, reason = _excess(outcome, limits) or _fault(outcome, limits) or _answer(outcome, test)
    return verdict, reason, outcome.cpu_s, outcome.elapsed_s


def _excess(outcome: Outcome, limits: Limits) -> tuple[Verdict, str] | None:
    """Return the verdict and the reason if the program exceeded a limit, otherwise None."""
    if outcome.cpu_s > limits.time_s or outcome.end == CPU_TIME:
        return Verdict.TIME_LIMIT, f"it used more than {limits.time_s:g} s of CPU time"
    if outcome.end == WALL_CLOCK:
        return Verdict.TIME_LIMIT, f"it waited, and had not ended after {limits.wall_s:g} s"
    refused = outcome.status == -signal.SIGABRT and _NO_MEMORY in outcome.stderr
    if refused or outcome.peak_mib > limits.memory_mib:
        return Verdict.MEMORY_LIMIT, _too_much_memory(limits)
    return None


def _too_much_memory(limits: Limits) -> str:
    return f"it needed more than {limits.memory_mib} MiB of memory"


def _fault(outcome: Outcome, limits: Limits) -> tuple[Verdict, str] | None:
    """Return the verdict and the reason if the program did not exit with status 0, otherwise None."""
    if outcome.status == 0:
        return None
    if outcome.status == -signal.SIGXFSZ:
        return Verdict.RUNTIME_ERROR, f"it wrote more than {limits.output_kib} KiB"
    stderr = outcome.stderr.decode(errors="replace").strip()[-_STDERR_SHOWN:]
    return Verdict.RUNTIME_ERROR, describe_exit(outcome.status) + (
        f"; the end of its stderr:\n{stderr}" if stderr else ""
    )


def _answer(outcome: Outcome, test: Test) -> tuple[Verdict, str]:
    difference = first_difference(outcome.stdout, test.output)
    return (Verdict.ACCEPTED, "") if difference is None else (Verdict.WRONG_ANSWER, difference)
