"""Set one deadline for all untrusted code that this process runs, in any thread."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.errors import InvalidSubmissionError
from re_bench.time_limits import TimeLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

_deadlines: list[Deadline] = []


class TimeLimitError(InvalidSubmissionError):
    """The scoring reached its time limit while a submission's code ran."""


class Deadline:
    """A :class:`~re_bench.time_limits.TimeLimit` for sandboxed programs; the latest one created applies."""

    def __init__(self, limit_s: float) -> None:
        self.enforced = False
        """Whether it has ended a program, or prevented a start."""
        self._limit = TimeLimit(limit_s)

    @property
    def reached(self) -> bool:
        """Whether it has passed."""
        return self._limit.reached

    @property
    def reason(self) -> str:
        """The message when it was reached."""
        limit = self._limit.describe()
        return f"the scoring reached its limit of {limit} while the submission's code or its programs ran"


@contextmanager
def deadline(limit_s: float) -> Iterator[Deadline]:
    """End the block's sandboxed programs after ``limit_s`` seconds, and let no more start."""
    own = Deadline(limit_s)
    _deadlines.append(own)
    try:
        yield own
    finally:
        _deadlines.remove(own)


def violation() -> str:
    """Return why programs must end if the deadline has passed, otherwise an empty string."""
    if not _deadlines or not _deadlines[-1].reached:
        return ""
    _deadlines[-1].enforced = True
    return _deadlines[-1].reason


@contextmanager
def charge_to_submission() -> Iterator[None]:
    """Charge the block's time to the submission: trusted work whose size it chooses, such as reading its log.

    A deadline that has passed by the end of the block, even if an exception ends it, counts as enforced.
    """
    try:
        yield
    finally:
        violation()


def raise_if_expired() -> None:
    """Raise if the deadline has passed.

    Raises:
        TimeLimitError: if it has.
    """
    if reason := violation():
        raise TimeLimitError(reason)
