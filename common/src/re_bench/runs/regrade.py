"""Score stored submissions again, with today's scorer, and compare with the log."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from re_bench.attempts.log import Attempt, AttemptLog
from re_bench.attempts.store import Store
from re_bench.errors import UsageError
from re_bench.processes import print_progress
from re_bench.runs.executor import Executor, job_gpus, open_executor
from re_bench.runs.job_resources import NodeRequirements, resources_per_job
from re_bench.runs.score_process import score_submission
from re_bench.scoring.attempt import record
from re_bench.task.chat_model import ChatModel
from re_bench.task.choices import choose_model, instance_in, instance_of
from re_bench.task.discovery import find_task

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from concurrent.futures import Future
    from pathlib import Path

    from re_bench.scoring.attempt import Score
    from re_bench.task.choices import Instance
    from re_bench.task.discovery import TaskFolder


@dataclass(frozen=True)
class Regraded:
    """An attempt as it was logged, and its score now."""

    attempt: Attempt
    score: Score | None
    reason: str = ""
    """Why it could not be scored again."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the attempt and its score."""
        score = None if self.score is None else self.score.to_dict()
        return {"attempt": asdict(self.attempt), "score": score, "reason": self.reason}


def regrade(
    log: Path,
    *,
    into: Path | None = None,
    sandbox: str | None = None,
    gpu_type: str | None = None,
    cluster: str | None = None,
    only: Container[int] | None = None,
    find: Callable[[str], TaskFolder] | None = None,
) -> list[Regraded]:
    """Score every stored submission of ``log`` again, each submission once by each instance.

    An attempt is scored by the instance that it names, else by instance 0: a log from before there were others. What
    the secret of another machine drew cannot be had here, and the attempt is left out, with the reason. As many are
    scored at a time as for :func:`re_bench.runs.calibrate.calibrate`.

    Args:
        log: the attempt log; it is not changed. On a cluster all nodes have to see what is stored beside it.
        into: a log that the new scores are appended to, in the order of the old one.
        sandbox: a backend's name, if not the default.
        gpu_type: of the GPUs, as in :class:`re_bench.runs.executor.Resources`.
        cluster: as for :func:`re_bench.runs.validate.validate`.
        only: the numbers of the attempts to score; None for all.
        find: gives the task that an attempt names; by default that of the working directory, or one that is here.

    Raises:
        UsageError: if a task of the log is not here, or a log cannot be used.
    """
    store = Store(log.resolve())
    scores: dict[_Job, Future[Score]] = {}
    regraded = []
    with open_executor(cluster) as executor:
        attempts = [attempt for attempt in AttemptLog(log).read().attempts if only is None or attempt.n in only]
        planned = [(attempt, *_plan(executor, attempt, store, sandbox, find or _task_of_log)) for attempt in attempts]
        for attempt, job, _reason in planned:
            if job is not None and job not in scores:
                resources = resources_per_job(executor, job.task, job.profile, gpu_type=gpu_type)
                scores[job] = executor.submit(job.score, attempt.n, resources=resources)
        for attempt, job, reason in planned:
            score = None if job is None else scores[job].result()
            regraded.append(Regraded(attempt, score, reason))
            if into is not None and job is not None and score is not None:
                record(job.task, score, into, attempt.submitted_at)
    return regraded


@dataclass(frozen=True)
class _Job:
    """One submission by one instance; it travels to where it is scored."""

    task: TaskFolder = field(compare=False)
    name: str
    profile: str
    submission: Path
    instance: Instance | None
    sandbox: str | None
    requirements: NodeRequirements | None = field(compare=False)

    def score(self, attempt: int) -> Score:
        """Score it here."""
        if self.requirements is not None:
            self.requirements.check(self.submission)
        print_progress(f"regrading attempt {attempt} of {self.name}")
        gpu = next(iter(job_gpus()), None)
        return score_submission(self.task, self.submission, self.profile, self.sandbox, instance=self.instance, gpu=gpu)


def _task_of_log(name: str) -> TaskFolder:
    if os.sep in name:  # none of our logs has a path there, whose program would run outside of any sandbox
        raise UsageError(f"the log names {name[:200]!r}, which is no task's name")
    return find_task(name)


def _plan(
    executor: Executor, attempt: Attempt, store: Store, sandbox: str | None, find: Callable[[str], TaskFolder]
) -> tuple[_Job | None, str]:
    """Return how to score an attempt again, or the reason why it cannot be."""
    submission = store.find(attempt.submission)
    if submission is None:
        return None, "its submission is not stored"
    task = find(attempt.task)
    instance, reason = _instance_of(task, attempt)
    if reason:
        return None, reason
    shared = NodeRequirements.of(executor, task, attempt.profile)
    task = choose_model(task, attempt.profile, ChatModel.from_details(attempt.details))
    return _Job(task, attempt.task, attempt.profile, submission, instance, sandbox, shared), ""


def _instance_of(task: TaskFolder, attempt: Attempt) -> tuple[Instance | None, str]:
    """Return the instance to score an attempt by, and the reason if it is not here."""
    drawn_by, named = task.profile(attempt.profile).instance, instance_in(attempt.details)
    if drawn_by == "chosen":
        return named if isinstance(named, int) else 0, ""
    here = instance_of(task, attempt.profile)
    if here is None or named in (None, here):
        return here, ""
    return None, f"it was scored by instance {named}, of another machine's secret; here it is {here}"
