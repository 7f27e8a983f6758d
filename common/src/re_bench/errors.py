"""Exceptions by whose fault they are; each has the exit status that a program returns for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ReBenchError(Exception):
    """Something of ours failed; the message says what, where, and what to do. Exit status 1."""

    exit_status = 1


class UsageError(ReBenchError):
    """The request cannot be carried out here: a wrong argument, a missing device, no sandbox. Exit status 2."""

    exit_status = 2


class InvalidSubmissionError(ReBenchError):
    """The submission is at fault; the message is the reason that its author reads. Exit status 3."""

    exit_status = 3

    def __init__(self, message: str, withheld: str = "") -> None:
        """Make one.

        Args:
            message: the reason.
            withheld: what the operator's log says besides, such as the words of a process that held-out data was in.
        """
        super().__init__(message)
        self.withheld = withheld


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one that is like it, or nothing."""
    import difflib  # noqa: PLC0415 - which only messages need

    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
