"""What can go wrong between the agent and a model."""

from __future__ import annotations

__all__ = ["BudgetSpent", "ContextFull", "ModelError"]


class ModelError(Exception):
    """A model could not be asked, or not be understood; retrying is over. The text says why."""


class ContextFull(ModelError):  # noqa: N818 - named for the state that it reports
    """The prompt is longer than the model reads."""


class BudgetSpent(Exception):  # noqa: N818 - it is an end that was asked for, not a mistake
    """A cap does not allow another call; raised before the call. ``cap`` is ``cost``, ``tokens`` or ``time``."""

    def __init__(self, text: str, *, cap: str) -> None:
        super().__init__(text)
        self.cap = cap
