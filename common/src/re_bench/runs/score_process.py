"""One scoring, in a process of its own: the task's ``score.py`` with ``--json``."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import time
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.gpu.devices import only_gpus
from re_bench.processes import print_progress, run_program, temporary_directory
from re_bench.runs.attempts import Attempt, AttemptLog, FinalScore
from re_bench.runs.submission_store import AttemptRecords, Store
from re_bench.scoring.score import EXIT_STATUS, Score
from re_bench.scoring.time_limit import scorer_limit_s
from re_bench.task.choices import instance_details, instance_environment, instance_of, profile_name
from re_bench.task.workspace import lay_out_and_make

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench.runs.elapsed import Elapsed
    from re_bench.task.choices import Instance
    from re_bench.task.discovery import TaskFolder

_PATIENCE_S = 30.0
"""For a scorer that ends at its own limit: to start, to end, and to remove what it has copied."""


def score_submission(
    task: TaskFolder,
    submission: Path,
    profile: str = "auto",
    sandbox: str | None = None,
    records: Path | None = None,
    *,
    keep: Path | None = None,
    instance: Instance | None = None,
    gpu: str | None = None,
) -> Score:
    """Score ``submission`` with the task's own scorer in a process of its own.

    Progress goes to our stderr. The scorer ends at the profile's time limit, and is stopped where it does not.

    Args:
        task: the task.
        submission: the submission's directory.
        profile: a profile's name, or ``auto``.
        sandbox: a backend's name, if not the default.
        records: an existing directory that gets the scorer's own logs, if they are to be kept.
        keep: an existing directory that gets the scorer's staged copy, under its hash.
        instance: whose number the scorer takes instead of the chosen one's; needs the profile's own name.
        gpu: UUID of the GPU to score on, if not the first that CUDA shows us.

    Raises:
        UsageError: if the scorer says that it cannot be asked this here.
        ReBenchError: if the scorer does not keep its contract.
    """
    if not task.scorer.is_file():
        raise UsageError(f"{task.name} has no scorer yet: {task.scorer} is missing")
    program = [str(task.scorer), "--solution", str(submission), "--profile", profile, "--json"]
    program += ["--sandbox", sandbox] if sandbox else []
    program += ["--records", str(records)] if records else []
    program += ["--keep", str(keep)] if keep else []
    program += task.chat_model.words() if task.chat_model else []
    limit = _time_limit(task, profile)
    environment = instance_environment(task, profile, instance) | only_gpus(gpu)
    try:
        status, stdout = run_program(program, capture=True, time_limit_s=limit, environment=environment)
    except subprocess.TimeoutExpired:
        raise ReBenchError(f"{task.name}: the scorer did not end in {limit:g} s, and was stopped") from None
    if status == UsageError.exit_status:
        raise UsageError(f"{task.name}: the scorer could not start; its message is above")
    score = _parse(stdout)
    if score is None or EXIT_STATUS[score.status] != status:
        raise ReBenchError(
            f"{task.name}: the scorer ended with exit status {status} and no score that fits; see its messages above"
        )
    return score


def _time_limit(task: TaskFolder, profile: str) -> float | None:
    profiles = task.manifest.profiles.items()
    limits = [scorer_limit_s(entry.time_limit_s) for name, entry in profiles if profile in {name, "auto"}]
    return max(limits) + _PATIENCE_S if limits else None


def _parse(stdout: bytes) -> Score | None:
    try:
        score = Score.from_dict(json.loads(stdout))
    except (ValueError, TypeError, KeyError):
        return None
    return score if score.status in EXIT_STATUS else None


def score_variant(
    task: TaskFolder,
    variant: str,
    profile: str,
    sandbox: str | None = None,
    template: Path | None = None,
    *,
    seed: int = 0,
    gpu: str | None = None,
    make_on: str | None = None,
) -> Score:
    """Lay out one of our solutions as an agent would leave it, make what it submits, and score it.

    Args:
        task: the task.
        variant: one of :func:`re_bench.task.workspace.variants`.
        profile: ``cpu``, ``gpu`` or ``paper``.
        sandbox: a backend's name, if not the default.
        template: what is copied instead of preparing; see :func:`re_bench.task.workspace.lay_out`.
        seed: what the command that makes the solution gets as ``RE_BENCH_SEED``.
        gpu: as for :func:`score_submission`.
        make_on: UUID of the GPU that the command gets, if not the first that CUDA shows us.
    """
    with temporary_directory("re-bench-workspace-") as directory:
        directory.chmod(0o755)
        workspace = directory / "workspace"
        lay_out_and_make(
            task, workspace, variant, profile=profile, sandbox=sandbox, template=template, seed=seed, gpu=make_on
        )
        return score_submission(task, workspace, profile, sandbox, gpu=gpu)


def score_and_record(
    task: TaskFolder,
    submission: Path,
    profile: str,
    sandbox: str | None,
    log: Path,
    *,
    details: Mapping[str, str] | None = None,
    handed_in: Elapsed | None = None,
) -> tuple[Score, FinalScore]:
    """Score ``submission``, keep the scorer's staged copy beside ``log``, and append the attempt; see :func:`record`.

    The scorer's own logs are kept beside ``log`` too, in :class:`AttemptRecords`. What ``details`` say of the agent's
    circumstances is added to the score's own. ``handed_in`` is the run's time when the submission was handed in, if
    something counts it.

    A scorer that gives no score is an attempt with the status ``error``.

    Raises:
        UsageError: as :func:`score_submission` and :func:`record`; there is no attempt then.
        ReBenchError: as :func:`re_bench.task.choices.instance_of`; nor then.
    """
    started, name = time.monotonic(), profile_name(task, profile)
    instance = instance_details(instance_of(task, name))
    with Store(log).incoming() as copy, AttemptRecords(log).incoming() as records:
        try:
            score = score_submission(task, submission, profile, sandbox, records.directory, keep=copy.directory)
        except UsageError:
            raise
        except ReBenchError as error:
            print_progress(str(error))
            seconds = time.monotonic() - started
            score = Score.error(task.name, name, str(error), seconds=seconds, details=instance)
            score = replace(score, submission=copy.sha256)
        score = replace(score, details={**score.details, **(details or {})})
        final = record(task, score, log, handed_in)
        records.keep(final.attempt)
    return score, final


def record(task: TaskFolder, score: Score, path: Path, handed_in: Elapsed | None = None) -> FinalScore:
    """Append ``score`` to the attempt log at ``path``; return the final score so far, with this attempt's number.

    ``handed_in`` is as for :func:`score_and_record`.

    Raises:
        UsageError: if the log is of another task or profile, or cannot be written.
    """
    log = AttemptLog(path)
    try:
        attempts = log.read().attempts
        foreign = {(entry.task, entry.profile) for entry in attempts} - {(score.task, score.profile)}
        if foreign:
            raise UsageError(
                f"{path}: holds attempts at {'/'.join(min(foreign))}; give {score.task}/{score.profile} its own log"
            )
        models = {entry.details["model"] for entry in attempts if "model" in entry.details}
        if models - {score.details.get("model", min(models, default=None))}:
            raise UsageError(f"{path}: holds attempts with {min(models)}; give {score.details['model']} its own log")
        attempt = log.append(_attempt(task, score, handed_in))
        anchors = task.manifest.anchors(score.profile)
        final = log.final(task.manifest.aggregation, (anchors.starting, anchors.reference) if anchors else None)
    except OSError as error:
        raise UsageError(str(error)) from None
    return replace(final, attempt=attempt.n)


def _attempt(task: TaskFolder, score: Score, handed_in: Elapsed | None) -> Attempt:
    return Attempt(
        time=dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
        task=score.task,
        profile=score.profile,
        status=score.status,
        raw=score.raw,
        reward=score.reward,
        message=score.message,
        submission=score.submission,
        sandbox=score.sandbox,
        scorer=f"re-bench-common {version('re-bench-common')}, task version {task.manifest.version}",
        details=dict(score.details),
        seconds=score.seconds,
        final_raw=score.final_raw,
        wall_s=None if handed_in is None else round(handed_in.wall_s, 3),
        working_s=None if handed_in is None else round(handed_in.working_s, 3),
    )
