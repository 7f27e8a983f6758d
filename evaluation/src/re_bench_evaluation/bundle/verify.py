"""Verifying a bundle: checksums, agreement of records and logs, and a sample of its submissions scored again."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from re_bench.data.cache import cache_directory
from re_bench.data.files import replace_file, sha256_of
from re_bench.data.provenance import hardware
from re_bench.errors import ReBenchError, UsageError
from re_bench.normalise import normalise
from re_bench.processes import print_progress
from re_bench.records import EvaluationRecord, RunRecord, run_directories
from re_bench.runs.attempts import AttemptLog
from re_bench.runs.regrade import regrade
from re_bench.runs.submission_store import Store
from re_bench.tables import number
from re_bench.task.discovery import task_named
from re_bench_evaluation.bundle.archive import DamagedBundleError, open_bundle
from re_bench_evaluation.bundle.consistency import missing_submissions, notes_of, problems_of, submission_problems

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.runs.attempts import Attempt
    from re_bench.runs.regrade import Regraded
    from re_bench.scoring.score import Score
    from re_bench.task.manifest import Anchors
    from re_bench_evaluation.bundle.archive import ArchiveLimits, Unpacked

Outcome = Literal["agrees", "differs", "not compared"]
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Rescored:
    """An attempt of the sample, and what came of scoring its submission again."""

    run: str
    attempt: int
    outcome: Outcome
    reason: str
    status: str
    raw: float | None
    reward: float | None
    status_now: str | None = None
    raw_now: float | None = None
    reward_now: float | None = None


class Verification(BaseModel):
    """What came of verifying a bundle; this machine keeps it under the bundle's SHA-256."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    v: Literal[1] = 1
    sha256: str
    """Of the bundle."""
    evaluation: str
    time: str
    """ISO 8601 in UTC."""
    hardware: str
    versions: dict[str, str]
    files: int
    """How many files have the SHA-256 of the manifest."""
    problems: tuple[str, ...]
    """What does not hold; the bundle is verified if there is none."""
    notes: tuple[str, ...]
    """What was not checked, or a reader has to know."""
    seed: int
    rescored: tuple[Rescored, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong; how many scores were compared is another question."""
        return not self.problems

    @property
    def compared(self) -> int:
        """How many submissions were scored again and could be compared."""
        return sum(entry.outcome != "not compared" for entry in self.rescored)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {**self.model_dump(mode="json"), "holds": self.holds, "compared": self.compared}


def verify(
    file: Path,
    *,
    sample: int = 5,
    seed: int = 0,
    sandbox: str | None = None,
    limits: ArchiveLimits | None = None,
) -> Verification:
    """Verify a bundle and keep the result, which :func:`verification_of` returns from then on.

    Nothing of the bundle is executed but submissions, by the tasks' own scorers in their sandbox.

    Args:
        file: the bundle.
        sample: how many submissions are scored again: first those that decide the score of a run, then others.
        seed: of the choice among them.
        sandbox: a backend's name, if not the default.
        limits: how large it may be.

    Raises:
        UsageError: if it is no bundle, holds what no bundle of ours has, or changes meanwhile.
    """
    digest = sha256_of(file) if file.is_file() else ""
    if not digest:
        wrong = "a directory; pack it first: re-bench bundle EVALUATION" if file.is_dir() else "no file that is there"
        raise UsageError(f"{file}: expected a bundle, got {wrong}")
    with file.open("rb") as opened:
        if opened.read(len(_GZIP)) != _GZIP:
            raise UsageError(f"{file}: expected a bundle, which is compressed with gzip, got something else")
    problems, notes, rescored, files, name = [], [], [], 0, ""
    try:
        with open_bundle(file, limits) as unpacked:
            files, name = len(unpacked.manifest.files) - len(unpacked.problems), unpacked.manifest.evaluation
            problems = [*unpacked.problems, *problems_of(unpacked.directory)]
            problems += submission_problems(unpacked.directory)
            notes = _notes(unpacked)
            if sample and not unpacked.problems:
                rescored = [_rescored(*chosen, sandbox) for chosen in _sample(unpacked.directory, sample, seed)]
    except DamagedBundleError as error:
        problems = [str(error)]
    if sha256_of(file) != digest:
        raise UsageError(f"{file}: it changed while it was verified")
    problems += [f"{entry.run}: {entry.reason}" for entry in rescored if entry.outcome == "differs"]
    if sample and not any(entry.outcome != "not compared" for entry in rescored):
        notes.append("no score was compared")
    result = Verification(
        sha256=digest,
        evaluation=name,
        time=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        hardware=hardware(),
        versions=_versions(),
        files=files,
        problems=tuple(problems),
        notes=tuple(notes),
        seed=seed,
        rescored=tuple(rescored),
    )
    _keep(result)
    return result


def verification_of(file: Path) -> Verification | None:
    """Return the last result of verifying exactly this file on this machine, with this version; None if it never was.

    It lies in the cache, and not beside the file: who gives a bundle away cannot give its verification away with it.
    """
    digest = sha256_of(file)
    try:
        result = Verification.model_validate_json(_kept_at(digest).read_bytes())
    except (OSError, ValidationError):
        return None
    return result if (result.sha256, result.versions) == (digest, _versions()) else None


def _versions() -> dict[str, str]:
    return {"re-bench-common": version("re-bench-common")}


def _kept_at(sha256: str) -> Path:
    return cache_directory() / "verified" / f"{sha256}.json"


def _keep(result: Verification) -> None:
    path = _kept_at(result.sha256)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, result.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        print_progress(f"{path}: that the bundle was verified cannot be kept: {error.strerror}")


def _notes(unpacked: Unpacked) -> list[str]:
    try:
        notes = list(notes_of(unpacked.directory))
    except ReBenchError:
        return []  # which is a problem already
    notes += [f"{name}: {change}" for name, change in unpacked.manifest.changed.items()]
    notes += [f"not in the bundle: {entry.files} files, {entry.reason}" for entry in unpacked.manifest.left_out]
    for directory in run_directories(unpacked.directory):
        log = _log_of(directory)
        if log is not None and (missing := missing_submissions(log)):
            notes.append(f"{directory.name}: the submissions of {len(missing)} attempts are not in the bundle")
    notes.append("dollars, tokens and times are as the records say; they cannot be measured again")
    return notes


def _log_of(directory: Path) -> Path | None:
    try:
        return RunRecord.load(directory).attempt_log(directory)
    except ReBenchError:
        return None


def _sample(evaluation: Path, size: int, seed: int) -> list[tuple[str, Path, Attempt]]:
    """Return the attempts to score again, each with its run and log: what decides a score first, else by chance."""
    try:
        aggregations = {task.name: task.aggregation for task in EvaluationRecord.load(evaluation).tasks}
    except ReBenchError:
        return []
    deciding: list[tuple[str, Path, Attempt]] = []
    others: list[tuple[str, Path, Attempt]] = []
    for directory in run_directories(evaluation):
        log = _log_of(directory)
        if log is None:
            continue
        contents, store = AttemptLog(log).read(), Store(log)
        kept = [attempt for attempt in contents.attempts if store.find(attempt.submission) is not None]
        kept = [attempt for attempt in kept if attempt.status != "error" and attempt.task in aggregations]
        final = contents.final(aggregations[kept[0].task], None).raw if kept else None
        for attempt in kept:
            decides = final is not None and attempt.raw_for_final == final
            (deciding if decides else others).append((directory.name, log, attempt))
    chance = random.Random(seed)
    for group in (deciding, others):
        chance.shuffle(group)
    return [*deciding, *others][:size]


def _rescored(run: str, log: Path, attempt: Attempt, sandbox: str | None) -> Rescored:
    print_progress(f"{run}: attempt {attempt.n} is scored again")
    try:
        regraded = regrade(log, only=(attempt.n,), sandbox=sandbox, find=task_named)[0]
        outcome, reason = _compare(regraded)
    except ReBenchError as error:
        regraded, outcome, reason = None, "not compared", str(error)
    now = None if regraded is None else regraded.score
    return Rescored(
        run,
        attempt.n,
        outcome,
        reason,
        attempt.status,
        attempt.raw,
        attempt.reward,
        status_now=None if now is None else now.status,
        raw_now=None if now is None else now.raw,
        reward_now=None if now is None else now.reward,
    )


def _compare(regraded: Regraded) -> tuple[Outcome, str]:
    """Return what came of a regrading, and in words why."""
    attempt, score = regraded.attempt, regraded.score
    if score is None:
        return "not compared", regraded.reason
    if score.status == "error":
        return "not compared", f"something of ours failed here: {score.message}"
    if score.submission != attempt.submission:
        return "differs", f"attempt {attempt.n}: the submission's hash is {score.submission[:12]} now"
    task = task_named(attempt.task)
    profile = task.profile(attempt.profile)
    there, here = (details.get("hardware") for details in (attempt.details, score.details))
    if not profile.parallel and there != here:
        return "not compared", f"its score depends on the hardware: {there} there, {here} here"
    tolerance = max(profile.tolerance.baseline, profile.tolerance.reference)
    return _compare_scores(attempt, score, tolerance, task.manifest.anchors(attempt.profile))


def _compare_scores(attempt: Attempt, score: Score, tolerance: float, anchors: Anchors | None) -> tuple[Outcome, str]:
    if score.status != attempt.status:
        return "differs", f"attempt {attempt.n} was {attempt.status} and is {score.status} now: {score.message}"
    if attempt.status == "invalid":
        return "agrees", "refused again"
    if attempt.reward is None and score.reward is None:
        return "not compared", "it has no reward, as the profile has no anchors"
    pairs = [("reward", attempt.reward, score.reward)]
    if attempt.final_raw is not None or score.final_raw is not None:  # which then decides the score of the run
        pairs.append(("final reward", _final_reward(attempt, anchors), _final_reward(score, anchors)))
    words = [f"{name} {number(then)} then and {number(now)} now" for name, then, now in pairs]
    text = f"{', '.join(words)}, tolerance {tolerance:g}"
    if any(then is None or now is None or abs(then - now) > tolerance for _name, then, now in pairs):
        return "differs", f"attempt {attempt.n}: {text}"
    return "agrees", text


def _final_reward(scored: Attempt | Score, anchors: Anchors | None) -> float | None:
    """Return the reward of what counts for the final score apart from the raw score, by the task's own anchors."""
    if scored.final_raw is None or anchors is None:
        return None
    return normalise(scored.final_raw, anchors.starting, anchors.reference)
