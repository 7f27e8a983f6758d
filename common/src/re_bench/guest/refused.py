"""How a task's harness refuses a submission."""

from __future__ import annotations


class RefusedError(Exception):
    """The submission is at fault; the text alone is the reason that its author reads."""
