"""Score stored submissions again, with today's scorer, and compare with the log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from re_bench.processes import print_progress
from re_bench.runs.attempts import Attempt, AttemptLog
from re_bench.runs.score_process import record, score_submission
from re_bench.runs.submission_store import Store
from re_bench.task.chat_model import ChatModel
from re_bench.task.discovery import find_task
from re_bench.task.instance import instance_in, instance_of
from re_bench.task.model_choice import choose_model

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task
    from re_bench.task.instance import Instance


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


def regrade(log: Path, *, into: Path | None = None, sandbox: str | None = None) -> list[Regraded]:
    """Score every stored submission of ``log`` again, each submission once by each instance.

    An attempt is scored by the instance that it names, else by instance 0: a log from before there were others. What
    the secret of another machine drew cannot be had here, and the attempt is left out, with the reason.

    Args:
        log: the attempt log; it is not changed.
        into: a log that the new scores are appended to, in the order of the old one.
        sandbox: a backend's name, if not the default.

    Raises:
        UsageError: if a task of the log is not here, or a log cannot be used.
    """
    store = Store(log)
    scores: dict[tuple[str, str, object], Score] = {}
    regraded = []
    for attempt in AttemptLog(log).read().attempts:
        submission = store.find(attempt.submission)
        if submission is None:
            regraded.append(Regraded(attempt, None, "its submission is not stored"))
            continue
        task = find_task(attempt.task)
        instance, reason = _instance_of(task, attempt)
        if reason:
            regraded.append(Regraded(attempt, None, reason))
            continue
        task = choose_model(task, attempt.profile, ChatModel.from_details(attempt.details))
        key = (attempt.profile, attempt.submission, instance)
        if key not in scores:
            print_progress(f"regrading attempt {attempt.n} of {attempt.task}")
            scores[key] = score_submission(task, submission, attempt.profile, sandbox, instance=instance)
        regraded.append(Regraded(attempt, scores[key]))
        if into is not None:
            record(task, scores[key], into)
    return regraded


def _instance_of(task: Task, attempt: Attempt) -> tuple[Instance | None, str]:
    """Return the instance to score an attempt by, and the reason if it is not here."""
    drawn_by, named = task.profile(attempt.profile).instance, instance_in(attempt.details)
    if drawn_by == "chosen":
        return named if isinstance(named, int) else 0, ""
    here = instance_of(task, attempt.profile)
    if here is None or named in (None, here):
        return here, ""
    return None, f"it was scored by instance {named}, of another machine's secret; here it is {here}"
