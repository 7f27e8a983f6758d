"""Score stored submissions again with the current scorer, and compare the scores with the log."""

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
    """A logged attempt and its new score."""

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
    """Score every stored submission of ``log`` again, once for each instance.

    Each attempt is scored with the instance it names, or instance 0 if it names none (an old log). An attempt whose
    instance was drawn from another machine's secret is skipped with the reason. Scorings run concurrently as in
    :func:`re_bench.runs.calibrate.calibrate`.

    Args:
        log: the attempt log; it is not changed. On a cluster, all nodes must see the submissions stored next to it.
        into: a log to append the new scores to, in the order of the old one.
        sandbox: name of a backend; None for the default.
        gpu_type: as in :class:`re_bench.runs.executor.Resources`.
        cluster: as for :func:`re_bench.runs.validate.validate`.
        only: numbers of the attempts to score; None for all.
        find: returns the task of a name in the log; None for :func:`re_bench.task.discovery.find_task`.

    Raises:
        UsageError: if a task of the log is not found, or a log cannot be used.
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
    """One submission to score with one instance; pickled to where it runs."""

    task: TaskFolder = field(compare=False)
    name: str
    profile: str
    submission: Path
    instance: Instance | None
    sandbox: str | None
    requirements: NodeRequirements | None = field(compare=False)

    def score(self, attempt: int) -> Score:
        """Score the submission on this node."""
        if self.requirements is not None:
            self.requirements.check(self.submission)
        print_progress(f"regrading attempt {attempt} of {self.name}")
        gpu = next(iter(job_gpus()), None)
        return score_submission(self.task, self.submission, self.profile, self.sandbox, instance=self.instance, gpu=gpu)


def _task_of_log(name: str) -> TaskFolder:
    if os.sep in name:  # a stranger's log must not choose a scorer, which runs outside of any sandbox
        raise UsageError(f"the log has an invalid task name: {name[:200]!r}")
    return find_task(name)


def _plan(
    executor: Executor, attempt: Attempt, store: Store, sandbox: str | None, find: Callable[[str], TaskFolder]
) -> tuple[_Job | None, str]:
    """Return the job that scores an attempt again, or None and the reason why it cannot be scored."""
    submission = store.find(attempt.submission)
    if submission is None:
        return None, "submission not stored"
    task = find(attempt.task)
    instance, reason = _instance_of(task, attempt)
    if reason:
        return None, reason
    shared = NodeRequirements.of(executor, task, attempt.profile)
    task = choose_model(task, attempt.profile, ChatModel.from_details(attempt.details))
    return _Job(task, attempt.task, attempt.profile, submission, instance, sandbox, shared), ""


def _instance_of(task: TaskFolder, attempt: Attempt) -> tuple[Instance | None, str]:
    """Return the instance to score an attempt with, and the reason if this machine does not have it."""
    drawn_by, named = task.profile(attempt.profile).instance, instance_in(attempt.details)
    if drawn_by == "chosen":
        return named if isinstance(named, int) else 0, ""
    here = instance_of(task, attempt.profile)
    if here is None or named in (None, here):
        return here, ""
    return None, f"scored with instance {named} of another machine's secret; this machine's is {here}"
