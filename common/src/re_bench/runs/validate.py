"""Validate a task: the baseline must get a reward of about 0, the reference about 1, and no cheat may succeed."""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError, did_you_mean
from re_bench.gpu.devices import GpuPlan
from re_bench.processes import print_lines, print_progress, temporary_directory
from re_bench.runs.executor import job_gpus, open_executor
from re_bench.runs.job_resources import NodeRequirements, default_jobs, resources_per_job
from re_bench.runs.score_process import score_submission, score_variant
from re_bench.runs.validation import (
    ANCHORED,
    SUBMISSION,
    Report,
    base_solution,
    brief,
    judge,
    may_be_valid,
    scores_above_base,
)
from re_bench.scoring.attempt import Score
from re_bench.task.prepare import run_preparation
from re_bench.task.workspace import make_template, variants

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from pathlib import Path

    from re_bench.task.discovery import TaskFolder

Scorings = dict[Future[tuple[Score, float]], str]
"""The solution's name by the scoring's future, which returns the score and the seconds taken."""

_MAX_NAMED = 5
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
    only: Sequence[str] = (),
) -> Report:
    """Prepare a profile, score baseline, reference and the profile's cheats, and judge the scores.

    A cheat's base is the solution that the cheat is derived from. The bases of valid cheats are also scored once. In a
    profile that is not ``parallel``, scores depend on time and therefore vary: a cheat that scores above its base is
    then scored again, like the base, until both have three scores.

    A solution that cannot be built or scored gets the status ``error`` and does not stop the others. Workspaces are
    copies of one template, except on a cluster and for repeats of baseline and reference, which create new workspaces.
    A line on stderr reports each finished scoring.

    Args:
        task: the task.
        profile: the profile's name.
        repeats: how often to score baseline and reference.
        jobs: number of concurrent scorings on each machine; None for
            :func:`re_bench.runs.job_resources.default_jobs`. Use more than 1 only if concurrent scorings do not disturb
            each other's measurements.
        sandbox: name of a backend; None for the default.
        solution: the directory of a submission to score as well.
        gpus: the GPUs for scorings that need a GPU; None for the first GPU that CUDA shows.
        gpu_type: as in :class:`re_bench.runs.executor.Resources`.
        cluster: address of a Ray cluster to run on; its nodes must meet
            :class:`re_bench.runs.job_resources.NodeRequirements`.
        show: called with all scorings so far, whenever scorings are submitted or a scoring ends.
        only: solutions to score, as for :func:`choose_solutions`; empty for all.

    Raises:
        UsageError: if the task cannot be validated on this machine, or has no such solution.
        ReBenchError: if the profile cannot be prepared.
    """
    started, scorings, show = time.monotonic(), Scorings(), show or len
    chosen = choose_solutions(task, only)
    skipped = [name for name in _skipped(task, profile) if name in chosen]
    ours = [name for name in chosen if name not in skipped]
    compared = [name for name in ours if may_be_valid(task, name, profile)]
    names = [*ours, *_bases(task, profile, compared, ours), *([SUBMISSION] if solution else [])]
    if skipped:
        print_progress(f"{task.name}: {_describe_skipped(profile, skipped)}")
    order = [(name, seed) for name in names for seed in range(repeats if name in ANCHORED else 1)]
    scores: defaultdict[str, list[Score]] = defaultdict(list, {name: [] for name in names})
    elapsed: defaultdict[str, list[float]] = defaultdict(list)
    plan = gpus or GpuPlan((), ())
    score_on = plan.other if task.profile(profile).parallel else plan.timed
    with (
        temporary_directory("re-bench-prepared-") as directory,
        open_executor(cluster, gpus=score_on if gpus else None) as executor,
    ):
        template = None if executor.remote else directory / "template"
        if template is not None:
            template.mkdir(mode=0o755)
            make_template(task, template, partial(run_preparation, task, profile))
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
            order = _repeats_to_run(task, profile, scores)
    rows = [replace(judge(task, name, scores), elapsed=elapsed[name]) for name in scores]
    note, seconds = _note(task, profile, skipped), time.monotonic() - started
    return Report(task.name, profile, rows, note, skipped=skipped, seconds=seconds)


def _print(task: str, seconds: float, name: str, score: Score) -> None:
    """Print a line about a finished scoring."""
    reward = "-" if score.deciding_reward is None else f"{score.deciding_reward:z.4f}"
    reason = "" if score.status == "valid" else f" {brief(score.message)}"
    print_progress(f"[{seconds:6.1f} s] {task}: {name}: {score.status} {reward}{reason}")


@dataclass(frozen=True)
class _Job:
    """Settings shared by all scorings of a validation; jobs on a cluster receive a pickled copy."""

    task: TaskFolder
    profile: str
    sandbox: str | None
    solution: Path | None
    template: Path | None
    """Directory from which workspaces are copied, so that a cheat and its base start with the same files; None (on a
    cluster) to create each workspace from scratch."""
    make_on: tuple[str, ...]
    """UUIDs of the GPUs for solutions' commands; empty to run each command on the GPU that scores the solution."""
    requirements: NodeRequirements | None

    def timed_score(self, name: str, seed: int, number: int) -> tuple[Score, float]:
        """Score one solution; return the score and the seconds taken, including building the solution."""
        started = time.monotonic()
        score = self.score(name, seed, number)
        return score, time.monotonic() - started

    def score(self, name: str, seed: int, number: int) -> Score:
        """Score one solution; if this fails, print the error and return a score with the status ``error``.

        The solution's command gets ``seed`` and the scoring's GPU. If ``make_on`` has GPUs but not this one, the
        command instead gets the GPU in ``make_on`` that ``number`` selects.
        """
        if self.requirements is not None:
            self.requirements.check()
        gpu, started = next(iter(job_gpus()), None), time.monotonic()
        try:
            if self.solution is not None and name == SUBMISSION:
                return score_submission(self.task, self.solution, self.profile, self.sandbox, gpu=gpu)
            if name not in variants(self.task):
                return score_submission(self.task, self.task.directory / name, self.profile, self.sandbox, gpu=gpu)
            # Each further repeat of baseline or reference gets a new workspace, so that their spread includes the draw.
            start = None if name in ANCHORED and seed > 0 else self.template
            make_on = gpu if gpu in self.make_on or not self.make_on else self.make_on[number % len(self.make_on)]
            return score_variant(
                self.task, name, self.profile, self.sandbox, start, seed=seed, gpu=gpu, make_on=make_on
            )
        except UsageError:
            raise
        except (ReBenchError, OSError) as error:
            print_lines(f"{self.task.name}: {name}: {error}")
            return Score.error(self.task.name, self.profile, str(error), seconds=time.monotonic() - started)


def _repeats_to_run(task: TaskFolder, profile: str, scores: Mapping[str, Sequence[Score]]) -> list[tuple[str, int]]:
    """Return the scorings still to run, each as a solution's name and a seed.

    The bases of valid cheats come first. When they all have a score, the cheats that score above their base are
    repeated, and so are their bases: in a profile that is not ``parallel``, scores vary, and one of many cheats may
    score above its base by chance.
    """
    valid = [name for name in scores if name.startswith("cheats/") and scores[name][0].status == "valid"]
    if bases := _bases(task, profile, valid, scores):
        return [(name, 0) for name in bases]
    if task.manifest.profiles[profile].parallel:  # scores do not depend on time, so a repeat gives the same score
        return []
    above = [name for name in scores if name.startswith("cheats/") and scores_above_base(task, name, scores)]
    names = dict.fromkeys(above) | dict.fromkeys(base_solution(task, name, profile) for name in above)
    return [(name, number) for name in names for number in range(len(scores[name]), _REPEATS)]


def choose_solutions(task: TaskFolder, only: Sequence[str]) -> list[str]:
    """Return the names of the solutions to score.

    ``only`` contains ``baseline``, ``reference``, ``cheats`` (all cheats) or names of cheats; empty selects everything.

    Raises:
        UsageError: if the task has no such solution.
    """
    known = variants(task)
    chosen: set[str] = set()
    for name in only:
        found = [one for one in known if one in {name, f"cheats/{name}"} or one.startswith(f"{name}/")]
        if not found:
            hint = did_you_mean(name, (*ANCHORED, "cheats", *task.cheats))
            raise UsageError(f"{task.name} has no solution {name!r}{hint}")
        chosen.update(found)
    return [name for name in known if name in chosen or not only]


def _bases(task: TaskFolder, profile: str, cheats: Iterable[str], known: Container[str]) -> list[str]:
    """Return the existing bases of cheats, except for the solutions in ``known``."""
    bases = {base_solution(task, name, profile) for name in cheats}
    here = {base for base in bases if base in ANCHORED or (task.directory / base).is_dir()}
    return sorted(base for base in here if base not in known)


def _skipped(task: TaskFolder, profile: str) -> list[str]:
    others = {name for name, cheat in task.manifest.cheats.items() if not cheat.runs_on(profile)}
    return [f"cheats/{name}" for name in task.cheats if name in others]


def _describe_skipped(profile: str, skipped: Sequence[str]) -> str:
    listed = ", ".join(skipped) if len(skipped) <= _MAX_NAMED else f"{len(skipped)} cheats"
    return f"skipped for profile {profile}: {listed}"


def _note(task: TaskFolder, profile: str, skipped: Sequence[str]) -> str:
    entry = task.manifest.profiles[profile]
    notes = ["modelled, not measured"] if entry.modelled else []
    notes += ["anchors measured in the run"] if entry.in_run else []
    return "; ".join(notes + ([_describe_skipped(profile, skipped)] if skipped else []))


def default_repeats(task: TaskFolder) -> int:
    """Return how often to score baseline and reference: 3, or ``reference.repeats`` if the reference has a command."""
    build_spec = task.manifest.reference
    return _REPEATS if build_spec is None else build_spec.repeats
