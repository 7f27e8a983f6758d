"""Check a task: baseline scores 0, reference 1, every cheat is refused."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import print_progress, request_stop, temporary_directory
from re_bench.runs.score_process import score_submission, score_variant
from re_bench.runs.validation import ANCHORED, Report, judge
from re_bench.scoring.score import Score
from re_bench.task.prepare import run_preparation
from re_bench.task.workspace import make_template, variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench.gpu.devices import GpuPlan
    from re_bench.task.discovery import Task

_SUBMISSION = "--solution"
_LONGEST_FIRST = ("reference", "baseline", _SUBMISSION)
"""What is started before the cheats, so that scorings at the same time end together."""
_REPEATS = 3
_WAITING_FOR_GPU = 2
"""Scorings that may start while another holds a GPU."""


def validate(
    task: Task,
    profile: str,
    *,
    repeats: int = 1,
    jobs: int = 1,
    sandbox: str | None = None,
    solution: Path | None = None,
    gpus: GpuPlan | None = None,
) -> Report:
    """Score baseline, reference and every cheat of a task that makes sense in the profile, which is prepared first.

    A solution that cannot be laid out, made or scored gets the status ``error``, and the others are scored all the
    same. The cheats find copies of the same prepared files; baseline and reference find new ones every time.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        repeats: how often baseline and reference are scored.
        jobs: scorings at a time; more than one only where they do not disturb each other's measurements.
        sandbox: a backend's name, if not the default.
        solution: the directory of a submission to score beside ours.
        gpus: where scorings run that need a GPU, one job's all on one of them; None for the first that CUDA shows.

    Raises:
        UsageError: if this cannot be done here.
        ReBenchError: if the profile cannot be prepared.
    """
    started = time.monotonic()
    skipped = _skipped(task, profile)
    names = [*(name for name in variants(task) if name not in skipped), *([_SUBMISSION] if solution else [])]
    if skipped:
        print_progress(f"{task.name}: {_describe_skipped(profile, skipped)}")
    with temporary_directory("re-bench-prepared-") as directory:
        template = _make_template(task, profile, directory / "template")
        places = _places(jobs, gpus, timed=not task.manifest.profiles[profile].parallel)

        def score_once(name: str, seed: int) -> Score:
            with _taken(places) as place:
                score = _score(task, name, profile, sandbox, place, solution=solution, template=template, seed=seed)
            reward = "-" if score.reward is None else f"{score.reward:.4f}"
            line = f"{task.name}: {name}: {score.status} {reward}"
            print_progress(f"[{time.monotonic() - started:6.1f} s] {line}")
            return score

        order = [(name, seed) for name in _by_length(names) for seed in range(repeats if name in ANCHORED else 1)]
        scores: dict[str, list[Score]] = {name: [] for name in names}
        with _workers(jobs, separate_cores=task.manifest.profiles[profile].parallel) as pool:
            for (name, _seed), score in zip(order, pool.map(score_once, *zip(*order, strict=True)), strict=True):
                scores[name].append(score)
    rows = [judge(task, name, repeated, scores["baseline"]) for name, repeated in scores.items()]
    return Report(task.name, profile, rows, _note(task, profile, skipped), _problems(task), skipped)


def _make_template(task: Task, profile: str, directory: Path) -> Path:
    """Prepare the profile and make the new directory what all cheats begin with; nobody but us gets to see it."""
    directory.mkdir(mode=0o755)
    make_template(task, directory, partial(run_preparation, task, profile))
    return directory


@dataclass(frozen=True)
class _Place:
    """The GPUs of one job, as UUIDs; None for the first that CUDA shows."""

    score_on: str | None
    make_on: str | None


def _places(jobs: int, gpus: GpuPlan | None, *, timed: bool) -> SimpleQueue[_Place]:
    """Return a place for each of ``jobs``, spread over the GPUs."""
    places: SimpleQueue[_Place] = SimpleQueue()
    score_on, make_on = (gpus.timed if timed else gpus.other, gpus.other) if gpus else ((None,), (None,))
    for job in range(jobs):
        places.put(_Place(score_on[job % len(score_on)], make_on[job % len(make_on)]))
    return places


@contextmanager
def _taken(places: SimpleQueue[_Place]) -> Iterator[_Place]:
    """Take a place for the length of the block; there are as many as jobs."""
    place = places.get()
    try:
        yield place
    finally:
        places.put(place)


@contextmanager
def _workers(jobs: int, *, separate_cores: bool) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool of ``jobs`` threads; each may have cores of its own, which the programs that it runs inherit.

    Programs start as many threads as they have cores. Together they would have too many, which wait for each other.
    If the block fails, or we are stopped, the programs are ended, and jobs that wait are not started.
    """
    cores = sorted(os.sched_getaffinity(0))
    shares = iter([cores[job % len(cores) :: jobs] for job in range(jobs)])
    pool = ThreadPoolExecutor(
        jobs, initializer=lambda: os.sched_setaffinity(0, next(shares)) if separate_cores else None
    )
    try:
        yield pool
    except BaseException:
        with request_stop():
            pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _by_length(names: Sequence[str]) -> list[str]:
    """Return the solutions in the order in which they are started."""
    return [
        *(name for name in _LONGEST_FIRST if name in names),
        *(name for name in names if name not in _LONGEST_FIRST),
    ]


def _skipped(task: Task, profile: str) -> list[str]:
    others = {name for name, cheat in task.manifest.cheats.items() if not cheat.runs_on(profile)}
    return [f"cheats/{name}" for name in task.cheats if name in others]


def _describe_skipped(profile: str, skipped: Sequence[str]) -> str:
    return f"not run, as they are not for profile {profile}: {', '.join(skipped)}"


def _note(task: Task, profile: str, skipped: Sequence[str]) -> str:
    entry = task.manifest.profiles[profile]
    notes = ["modelled, not measured"] if entry.modelled else []
    notes += ["anchors measured in the run"] if entry.in_run else []
    return "; ".join(notes + ([_describe_skipped(profile, skipped)] if skipped else []))


def _score(
    task: Task,
    name: str,
    profile: str,
    sandbox: str | None,
    place: _Place,
    *,
    solution: Path | None,
    template: Path | None,
    seed: int,
) -> Score:
    """Score one solution; an error of ours is printed on stderr in full and becomes a score with the status error."""
    started = time.monotonic()
    try:
        if solution is not None and name == _SUBMISSION:
            return score_submission(task, solution, profile, sandbox, gpu=place.score_on)
        start = None if name in ANCHORED else template
        gpus = {"gpu": place.score_on, "make_on": place.make_on}
        return score_variant(task, name, profile, sandbox, start, seed=seed, **gpus)
    except UsageError:
        raise
    except (ReBenchError, OSError) as error:
        print_progress(f"{task.name}: {name}: {error}")
        return Score.error(task.name, profile, str(error), seconds=time.monotonic() - started)


def _problems(task: Task) -> list[str]:
    tables, directories = set(task.manifest.cheats), set(task.cheats)
    path = task.directory / "task.toml"
    lines = [f"{path}: cheats.{name}: there is no directory cheats/{name}" for name in sorted(tables - directories)]
    return lines + [f"{path}: cheats/{name} has no table [cheats.{name}]" for name in sorted(directories - tables)]


def default_jobs(task: Task, profile: str, gpus: GpuPlan | None = None) -> int:
    """Return how many scorings to run at a time.

    On each GPU a few start while one is timed, since a GPU has a lock, if there are enough cores not to disturb it.
    Elsewhere as many as we have cores where the manifest says ``parallel``, else one.
    """
    cores, entry = len(os.sched_getaffinity(0)), task.manifest.profiles[profile]
    if entry.device == "cuda":
        used = (gpus.other if entry.parallel else gpus.timed) if gpus else ("",)
        return min((_WAITING_FOR_GPU + 1) * len(used), max(1, cores // 4))
    return cores if entry.parallel else 1


def default_repeats(task: Task) -> int:
    """Return how often to score baseline and reference: once where the reference has to be made, which takes long.

    The manifest may say otherwise, where what is made differs from seed to seed.
    """
    recipe = task.manifest.reference
    return _REPEATS if recipe is None else recipe.repeats
