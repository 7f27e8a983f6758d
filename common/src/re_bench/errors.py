"""Exceptions, each with the exit status of a program that it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ReBenchError(Exception):
    """An internal error; the message says what failed, where, and what to do. Exit status 1."""

    exit_status = 1


class UsageError(ReBenchError):
    """A usage error, or something unsupported here: a wrong argument, a missing device, no sandbox. Exit status 2."""

    exit_status = 2


class InvalidSubmissionError(ReBenchError):
    """The submission is invalid. Exit status 3.

    Args:
        message: the reason, for the submission's author.
        withheld: details for the operator's log only, such as output of a process that had held-out data.
    """

    exit_status = 3

    def __init__(self, message: str, withheld: str = "") -> None:
        super().__init__(message)
        self.withheld = withheld


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name, with the most similar known one, or an empty string."""
    import difflib  # noqa: PLC0415 - needed for messages only

    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
