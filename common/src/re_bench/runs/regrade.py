"""Score stored submissions again, with today's scorer, and compare with the log."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from re_bench.data.instances import pin_instances
from re_bench.runs.attempts import Attempt, AttemptLog
from re_bench.runs.score_process import record, score_submission
from re_bench.runs.submission_store import Store
from re_bench.task.chat_model import ChatModel
from re_bench.task.discovery import find_task
from re_bench.task.model_choice import choose_model

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.scoring.score import Score


@dataclass(frozen=True)
class Regraded:
    """An attempt as it was logged, and its score now; None if its submission is not in the store."""

    attempt: Attempt
    score: Score | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the attempt and its score."""
        return {"attempt": asdict(self.attempt), "score": None if self.score is None else self.score.to_dict()}


def regrade(log: Path, *, into: Path | None = None, sandbox: str | None = None) -> list[Regraded]:
    """Score every stored submission of ``log`` again, each submission once, by the instance that its attempt names.

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
            regraded.append(Regraded(attempt, None))
            continue
        task, instance = find_task(attempt.task), attempt.details.get("instance")
        if isinstance(instance, int):
            pin_instances({f"{task.name}/{attempt.profile}": instance})
        task = choose_model(task, attempt.profile, ChatModel.from_details(attempt.details))
        key = (attempt.profile, attempt.submission, instance)
        if key not in scores:
            print(f"regrading attempt {attempt.n} of {attempt.task}", file=sys.stderr, flush=True)
            scores[key] = score_submission(task, submission, attempt.profile, sandbox)
        regraded.append(Regraded(attempt, scores[key]))
        if into is not None:
            record(task, scores[key], into)
    return regraded
