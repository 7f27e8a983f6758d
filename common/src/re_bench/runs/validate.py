"""Check a task: baseline scores 0, reference 1, every cheat is refused."""

from __future__ import annotations

import time
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu.devices import GpuPlan
from re_bench.processes import print_progress, temporary_directory
from re_bench.runs.executor import job_gpus, open_executor
from re_bench.runs.job_resources import NodeRequirements, default_jobs, resources_per_job
from re_bench.runs.score_process import score_submission, score_variant
from re_bench.runs.validation import ANCHORED, SUBMISSION, Report, base_solution, brief, judge, scores_above_base
from re_bench.scoring.attempt import Score
from re_bench.task.manifest import CHEAT
from re_bench.task.prepare import run_preparation
from re_bench.task.workspace import make_template, variants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from re_bench.task.discovery import TaskFolder

Scorings = dict[Future[tuple[Score, float]], str]
"""By what gives the score and its seconds, the name of the solution."""

_LONGEST_FIRST = ("reference", "baseline", SUBMISSION)
"""What is started before the cheats, so that scorings at the same time end together."""
_MOST_NAMED = 5
_REPEATS = 3


def validate(
    task: TaskFolder,
    profile: str,
    *,
    repeats: int = 1,
    jobs: int | None = None,
    sandbox: str | None = None,
    solution: Path | None = None,
    gpus: GpuPlan | None = None,
    gpu_type: str | None = None,
    cluster: str | None = None,
    show: Callable[[Scorings], object] | None = None,
) -> Report:
    """Score baseline, reference and every cheat of a task that makes sense in the profile, which is prepared first.

    The honest bases that cheats name are scored too, each once and as they lie in the task's directory. A measured
    cheat that scores above its base is scored again, and so is its base, until there are three scores of each.

    A solution that cannot be laid out, made or scored gets the status ``error``, and the others are scored all the
    same. The cheats find copies of the same prepared files; baseline and reference find new ones every time. A line on
    stderr tells of every scoring that has ended.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        repeats: how often baseline and reference are scored.
        jobs: scorings at a time, on each machine; None for :func:`re_bench.runs.job_resources.default_jobs`. More than
            one only where they do not disturb each other's measurements.
        sandbox: a backend's name, if not the default.
        solution: the directory of a submission to score beside ours.
        gpus: where scorings run that need a GPU, one job's all on one of them; None for the first that CUDA shows.
        gpu_type: of the GPUs, as in :class:`re_bench.runs.executor.Resources`.
        cluster: address of a Ray cluster on which they run instead of this machine, on nodes that are as this one: see
            :class:`re_bench.runs.job_resources.NodeRequirements`.
        show: is given all scorings when some are submitted and when one has ended.

    Raises:
        UsageError: if this cannot be done here.
        ReBenchError: if the profile cannot be prepared.
    """
    started, scorings, show = time.monotonic(), Scorings(), show or len
    skipped = _skipped(task, profile)
    ours = [name for name in variants(task) if name not in skipped]
    names = [*ours, *_bases(task, profile, ours), *([SUBMISSION] if solution else [])]
    if skipped:
        print_progress(f"{task.name}: {_describe_skipped(profile, skipped)}")
    order = [(name, seed) for name in _by_length(names) for seed in range(repeats if name in ANCHORED else 1)]
    scores: dict[str, list[Score]] = {name: [] for name in names}
    elapsed: dict[str, list[float]] = {name: [] for name in names}
    plan = gpus or GpuPlan((), ())
    score_on = plan.other if task.profile(profile).parallel else plan.timed
    with (
        temporary_directory("re-bench-prepared-") as directory,
        open_executor(cluster, gpus=score_on if gpus else None) as executor,
    ):
        template = None if executor.remote else _make_template(task, profile, directory / "template")
        solution = solution and solution.resolve()
        job = _Job(task, profile, sandbox, solution, template, plan.other, NodeRequirements.of(executor, task, profile))
        jobs = jobs or default_jobs(task, profile, gpus, executor)
        resources = resources_per_job(executor, task, profile, jobs, gpus=gpus, gpu_type=gpu_type)
        while order:
            futures = {
                executor.submit(job.timed_score, name, seed, number, resources=resources): name
                for number, (name, seed) in enumerate(order)
            }
            scorings.update(futures)
            show(scorings)
            for future in as_completed(futures):
                score, _seconds = future.result()
                _print(task.name, time.monotonic() - started, futures[future], score)
                show(scorings)
            for future, name in futures.items():
                score, seconds = future.result()
                scores[name].append(score)
                elapsed[name].append(seconds)
            order = _in_doubt(task, profile, scores)
    rows = [replace(judge(task, name, scores), elapsed=elapsed[name]) for name in scores]
    note, seconds = _note(task, profile, skipped), time.monotonic() - started
    return Report(task.name, profile, rows, note, _problems(task), skipped, seconds)


def _print(task: str, seconds: float, name: str, score: Score) -> None:
    """Print the line of a scoring that has ended."""
    reward = "-" if score.reward is None else f"{score.reward:z.4f}"
    reason = "" if score.status == "valid" else f" {brief(score.message)}"
    print_progress(f"[{seconds:6.1f} s] {task}: {name}: {score.status} {reward}{reason}")


def _make_template(task: TaskFolder, profile: str, directory: Path) -> Path:
    """Prepare the profile and make the new directory what all cheats begin with; only this process sees it."""
    directory.mkdir(mode=0o755)
    make_template(task, directory, partial(run_preparation, task, profile))
    return directory


@dataclass(frozen=True)
class _Job:
    """What the scorings of one validation have in common; it travels to where they run."""

    task: TaskFolder
    profile: str
    sandbox: str | None
    solution: Path | None
    template: Path | None
    """What all cheats begin with; None: each is laid out from the start, as on other machines."""
    make_on: tuple[str, ...]
    """UUIDs of the GPUs on which solutions may be made; none: where they are scored."""
    requirements: NodeRequirements | None

    def timed_score(self, name: str, seed: int, number: int) -> tuple[Score, float]:
        """Score one solution; return also the seconds that this took, with laying it out and making it."""
        started = time.monotonic()
        score = self.score(name, seed, number)
        return score, time.monotonic() - started

    def score(self, name: str, seed: int, number: int) -> Score:
        """Score one solution; an internal error is printed in full and becomes a score with the status error.

        Args:
            name: the solution's.
            seed: for the command that makes it.
            number: of the scoring, by which GPUs are dealt out.
        """
        if self.requirements is not None:
            self.requirements.check(self.solution)
        gpu, started = next(iter(job_gpus()), None), time.monotonic()
        try:
            if self.solution is not None and name == SUBMISSION:
                return score_submission(self.task, self.solution, self.profile, self.sandbox, gpu=gpu)
            if name not in variants(self.task):
                return score_submission(self.task, self.task.directory / name, self.profile, self.sandbox, gpu=gpu)
            start = None if name in ANCHORED else self.template
            make_on = gpu if gpu in self.make_on or not self.make_on else self.make_on[number % len(self.make_on)]
            return score_variant(
                self.task, name, self.profile, self.sandbox, start, seed=seed, gpu=gpu, make_on=make_on
            )
        except UsageError:
            raise
        except (ReBenchError, OSError) as error:
            print_progress(f"{self.task.name}: {name}: {error}")
            return Score.error(self.task.name, self.profile, str(error), seconds=time.monotonic() - started)


def _by_length(names: Sequence[str]) -> list[str]:
    """Return the solutions in the order in which they are started."""
    first = [name for name in names if not name.startswith("cheats/")]
    first.sort(key=lambda name: _LONGEST_FIRST.index(name) if name in _LONGEST_FIRST else len(_LONGEST_FIRST))
    return [*first, *(name for name in names if name.startswith("cheats/"))]


def _in_doubt(task: TaskFolder, profile: str, scores: Mapping[str, Sequence[Score]]) -> list[tuple[str, int]]:
    """Return what to score again, with its number: a measured cheat that scores above its base, and that base.

    A measurement spreads, and one of many cheats lies above by chance; means of :data:`_REPEATS` decide.
    """
    if task.manifest.profiles[profile].parallel:  # not measured, so it would come out the same
        return []
    above = [name for name in scores if name.startswith("cheats/") and scores_above_base(task, name, scores)]
    names = dict.fromkeys(above) | dict.fromkeys(base_solution(task, name, profile) for name in above)
    return [(name, number) for name in names for number in range(len(scores[name]), _REPEATS)]


def _bases(task: TaskFolder, profile: str, names: Sequence[str]) -> list[str]:
    """Return the directories of the honest bases of cheats that are there and not among ``names`` anyway."""
    cheats = [cheat for name, cheat in task.manifest.cheats.items() if f"cheats/{name}" in names]
    bases = {cheat.expectation(profile).derived_from for cheat in cheats}
    return sorted(base for base in bases if base and base not in names and (task.directory / base).is_dir())


def _skipped(task: TaskFolder, profile: str) -> list[str]:
    others = {name for name, cheat in task.manifest.cheats.items() if not cheat.runs_on(profile)}
    return [f"cheats/{name}" for name in task.cheats if name in others]


def _describe_skipped(profile: str, skipped: Sequence[str]) -> str:
    if len(skipped) > _MOST_NAMED:
        return f"{len(skipped)} cheats not run, as they are not for profile {profile}"
    return f"not run, as they are not for profile {profile}: {', '.join(skipped)}"


def _note(task: TaskFolder, profile: str, skipped: Sequence[str]) -> str:
    entry = task.manifest.profiles[profile]
    notes = ["modelled, not measured"] if entry.modelled else []
    notes += ["anchors measured in the run"] if entry.in_run else []
    return "; ".join(notes + ([_describe_skipped(profile, skipped)] if skipped else []))


def _problems(task: TaskFolder) -> list[str]:
    cheats = task.directory / "cheats"
    lines = [f"{cheats / name}: there is no {CHEAT}" for name in task.cheats if name not in task.manifest.cheats]
    for name, cheat in task.manifest.cheats.items():
        if cheat.derived_from is not None and not (task.directory / cheat.derived_from).is_dir():
            lines.append(f"{cheats / name / CHEAT}: derived_from: there is no directory {cheat.derived_from}")
    return lines


def default_repeats(task: TaskFolder) -> int:
    """Return how often to score baseline and reference: once where the reference has to be made, which takes long.

    The manifest may say otherwise, where what is made differs from seed to seed.
    """
    recipe = task.manifest.reference
    return _REPEATS if recipe is None else recipe.repeats
