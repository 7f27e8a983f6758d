"""Define what a sample's log keeps of its session: the task and every attempt."""

from __future__ import annotations

from typing import Any

from inspect_ai.util import StoreModel
from pydantic import Field


class SessionStore(StoreModel):
    """The session's part of a sample's store."""

    task: dict[str, Any] = Field(default_factory=dict)
    """A :class:`re_bench.records.TaskRecord`."""
    session: str = ""
    """The session's name."""
    directory: str = ""
    """The session's directory, with the attempt log, copies of scored submissions, and the scorer's log."""
    attempts: list[dict[str, Any]] = Field(default_factory=list)
    """Each :class:`re_bench.attempts.log.Attempt` as JSON values, in order."""
    final: dict[str, Any] | None = None
    """A :class:`re_bench.attempts.log.FinalScore`, once there is one."""
    hours: float | None = None
    """Working hours used."""
    model_dollars: float | None = None
    """Cost of the session's calls to the task's model; None without a model or a price."""
    scoring_model_dollars: float | None = None
    """Cost of the scorings' calls to the task's model."""
