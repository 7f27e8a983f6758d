"""The errors of calls to a model."""

from __future__ import annotations

__all__ = ["BudgetSpent", "ContextFull", "ModelError"]


class ModelError(Exception):
    """A call failed for good: the model could not be asked, or its answer not be read. The message says why."""


class ContextFull(ModelError):  # noqa: N818 - named for the state that it reports
    """The prompt is longer than the model's context."""


class BudgetSpent(Exception):  # noqa: N818 - a limit that the user set, not a failure
    """A cap does not allow another call; raised before the call. ``cap`` is ``cost``, ``tokens`` or ``time``."""

    def __init__(self, text: str, *, cap: str) -> None:
        super().__init__(text)
        self.cap = cap
