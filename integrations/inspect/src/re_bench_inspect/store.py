"""What a sample's log keeps of its session: the task, and every attempt as the session's attempt log has it."""

from __future__ import annotations

from typing import Any

from inspect_ai.util import StoreModel
from pydantic import Field


class SessionStore(StoreModel):
    """The part of a sample's store that is about its session; the log of an evaluation holds it."""

    task: dict[str, Any] = Field(default_factory=dict)
    """The task as it was, a :class:`re_bench.records.TaskRecord`."""
    session: str = ""
    """The session's name."""
    directory: str = ""
    """The session's directory, with the attempt log, the copies of what was scored, and the scorer's log."""
    attempts: list[dict[str, Any]] = Field(default_factory=list)
    """The attempts so far: :class:`re_bench.attempts.log.Attempt` as plain JSON values, in order."""
    final: dict[str, Any] | None = None
    """The final score, a :class:`re_bench.attempts.log.FinalScore`; None before, and where nothing was scored."""
    hours: float | None = None
    """Working hours that the session has used."""
    model_dollars: float | None = None
    """What the session's own calls to the task's model have cost; None without a model or a price."""
    scoring_model_dollars: float | None = None
    """What the calls of its scorings have cost."""
