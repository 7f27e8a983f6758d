"""The time at which all untrusted code that this process runs has to be over.

It is one of the whole process, so that every sandboxed program knows it that trusted code starts, in whatever thread,
without being told.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.errors import InvalidSubmissionError

if TYPE_CHECKING:
    from collections.abc import Iterator

_deadlines: list[Deadline] = []


class TimeLimitError(InvalidSubmissionError):
    """The time limit of a whole scoring was reached while a submission's code, or a program of it, ran."""


class Deadline:
    """When sandboxed programs end; the last one made counts."""

    def __init__(self, limit_s: float) -> None:
        """Begin now, for ``limit_s`` seconds."""
        self.enforced = False
        """Whether it has ended a program, or kept one from starting."""
        self._limit_s, self._at = limit_s, time.monotonic() + limit_s

    @property
    def remaining_s(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._at - time.monotonic())

    @property
    def reason(self) -> str:
        """What is told when it was reached."""
        return f"the scoring reached its limit of {self._limit_s:g} s while the submission's code or its programs ran"


@contextmanager
def deadline(limit_s: float) -> Iterator[Deadline]:
    """End all sandboxed programs that the block still runs after ``limit_s`` seconds, and start no more of them."""
    own = Deadline(limit_s)
    _deadlines.append(own)
    try:
        yield own
    finally:
        _deadlines.remove(own)


def violation() -> str:
    """Return why a program that runs, or is about to, has to end: the deadline has passed. Else the empty string."""
    if not _deadlines or _deadlines[-1].remaining_s:
        return ""
    _deadlines[-1].enforced = True
    return _deadlines[-1].reason


@contextmanager
def counted_as_untrusted() -> Iterator[None]:
    """Count the block's time as a submission's: trusted work whose size a submission chooses, such as reading its log.

    If the deadline has passed by the end of the block, whether it ended by itself or was cut off, then it is enforced.
    """
    try:
        yield
    finally:
        violation()


def raise_if_over() -> None:
    """Do nothing, or report that the deadline has passed while a program ran or was about to.

    Raises:
        TimeLimitError: if it has.
    """
    if reason := violation():
        raise TimeLimitError(reason)
