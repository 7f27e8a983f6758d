"""Scorings that measure time on a CPU: they wait for each other, and their programs are pinned and timed."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from re_bench.api import Job, RawScore, Task
from re_bench.errors import ReBenchError, UsageError
from re_bench.machine_lock import exclusive
from re_bench.runs.score_process import score_submission
from re_bench.sandbox import time_limits
from re_bench.scoring.score import LOCK_WAIT, score
from re_bench.task.choices import choose_profile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from re_bench.scoring.attempt import Score
    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

MEET = """
        import os, time
        from pathlib import Path
        place = Path(__file__).parent
        own = place / f"scoring_{os.getpid()}"
        own.touch()
        latest = time.monotonic() + float((place / "wait_s").read_text())
        while not (met := len(list(place.glob("scoring_*"))) > 1) and time.monotonic() < latest:
            time.sleep(0.01)
        time.sleep(0.5 if met else 0)  # until the other one has seen this one
        own.unlink()
        return RawScore(float(met), "fine")
"""
"""The body of a scorer that returns 1 if another scoring runs at the same time."""
PINNED = """
import json, os, subprocess, sys
before = sorted(os.sched_getaffinity(0))
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
child = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
after = json.loads(subprocess.check_output(child))
print(json.dumps([before, after, *(os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "OPENBLAS", "MKL"))]))
"""
WORK = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
FAKED = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {child!r}])
clock = time.perf_counter
time.perf_counter = lambda: clock() / 1000
started = time.perf_counter()
child.wait()
print(time.perf_counter() - started)
"""
"""A program that works in another process and prints a faked time."""


class Program(Task[None]):
    """Run the submission's ``number`` as a Python program; the score is its time."""

    profiles = MappingProxyType({"cpu": None, "gpu": None})

    def __init__(self, solution: Path | None = None) -> None:
        self._solution = solution

    def score(self, job: Job[None]) -> RawScore:
        finished = job.run_program(["python", "number"], solution=self._solution)
        return RawScore(finished.seconds, "fine", {"stdout": finished.stdout, "program_cpu_s": finished.cpu_s})


@pytest.fixture
def run(made_up: TaskFolder, tmp_path: Path) -> Callable[..., Score]:
    """Return a function that scores a program."""

    def run(program: str, task: TaskFolder = made_up, solution: Path | None = None) -> Score:
        submission = tmp_path / "submission"
        submission.mkdir(exist_ok=True)
        (submission / "number").write_text(program)
        return score(task, Program(solution), submission, profile="cpu")

    return run


def scores_of_two_processes(task: TaskFolder) -> list[dict[str, float]]:
    """Score the baseline in two processes at once."""
    with ThreadPoolExecutor(2) as pool:
        baseline = task.directory / "baseline"
        jobs = [pool.submit(score_submission, task, baseline, "cpu", "none") for _ in range(2)]
        scores = [job.result() for job in jobs]
    assert [one.message for one in scores] == ["fine", "fine"]
    return [{"raw": one.raw or 0.0, "wait_s": one.details.get(LOCK_WAIT, 0.0)} for one in scores]


def test_timed_scorings_of_two_processes_wait_for_each_other(
    made_up: TaskFolder, change: Callable[[TaskFolder, str, str, str], TaskFolder]
) -> None:
    body = made_up.scorer.read_text().partition("        try:\n            return")[0]
    made_up.scorer.write_text(f"{body}{MEET}\n\nif __name__ == '__main__':\n    main(MadeUp())\n")
    (made_up.directory / "wait_s").write_text("1.5")
    timed = scores_of_two_processes(change(made_up, "task.toml", 'device = "cpu"', 'device = "cpu"\ncores = 1'))
    assert [one["raw"] for one in timed] == [0.0, 0.0]
    assert max(one["wait_s"] for one in timed) > 0.5
    parallel = change(made_up, "task.toml", "cores = 1", "parallel = true")
    (made_up.directory / "wait_s").write_text("25")
    assert scores_of_two_processes(parallel) == [{"raw": 1.0, "wait_s": 0.0}] * 2


def test_a_scoring_that_cannot_get_the_cores_is_an_error_that_names_the_holder(
    made_up: TaskFolder,
    change: Callable[[TaskFolder, str, str, str], TaskFolder],
    run: Callable[..., Score],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed = change(made_up, "task.toml", 'device = "cpu"', 'device = "cpu"\ncores = 1')
    monkeypatch.setattr(time_limits, "MAX_STRETCH", 1.01)  # wait for 0.3 s only
    with exclusive("the cores", "cores", "another job", wait_s=60):
        result = run("", timed)
    assert result.status == "error"
    assert f"the cores: not free after 0.3 s: held by pid {os.getpid()} (" in result.message
    assert ": another job; wait for that job to end" in result.message


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="needs two cores")
def test_a_program_is_pinned_to_its_cores(
    made_up: TaskFolder, change: Callable[[TaskFolder, str, str, str], TaskFolder], run: Callable[..., Score]
) -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert json.loads(run(PINNED).details["stdout"]) == [cores, cores, None, None, None]
    pinned = change(made_up, "task.toml", 'device = "cpu"', 'device = "cpu"\ncores = 1')
    assert json.loads(run(PINNED, pinned).details["stdout"]) == [cores[-1:], cores[-1:], "1", "1", "1"]
    assert sorted(os.sched_getaffinity(0)) == cores
    many = change(made_up, "task.toml", "cores = 1", "cores = 4096")
    with pytest.raises(UsageError, match=f"profile cpu needs 4096 cores; this process may use {len(cores)}"):
        choose_profile(many, "cpu")


def test_times_are_measured_outside_of_the_program(run: Callable[..., Score]) -> None:
    result = run(FAKED.format(child=WORK.format(0.5)))
    assert float(result.details["stdout"]) < 0.1
    assert result.raw is not None
    assert 0.4 < result.details["program_cpu_s"] <= result.raw * len(os.sched_getaffinity(0))
    assert result.raw > 0.5


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('no data')", "python number failed: it ended with exit status 1\nno data"),
        ("while True: pass", "python number failed: it ended with signal 9"),
    ],
)
def test_a_failed_program_is_the_submission_s_fault(program: str, reason: str, run: Callable[..., Score]) -> None:
    result = run(program)
    assert (result.status, result.message) == ("invalid", reason)


def test_a_failed_program_of_the_task_is_an_internal_error(run: Callable[..., Score], made_up: TaskFolder) -> None:
    result = run("", solution=made_up.directory / "starter")
    assert result.status == "error"
    assert ReBenchError.__name__ in result.message
