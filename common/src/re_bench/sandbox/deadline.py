"""Set one deadline for all untrusted code that this process runs in any thread."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.errors import InvalidSubmissionError
from re_bench.sandbox.time_limits import TimeLimit, core_waits

if TYPE_CHECKING:
    from collections.abc import Iterator

_deadlines: list[Deadline] = []


class TimeLimitError(InvalidSubmissionError):
    """The scoring run reached its time limit while a submission's code ran, or before it could start."""


class Deadline(TimeLimit):
    """A time limit for all sandboxed programs; the newest deadline applies."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(limit_s, core_waits, started=True)
        self.enforced = False
        """Whether the deadline has stopped a program, or prevented a program from starting."""
        self.check()

    @property
    def reason(self) -> str:
        """The message to use if the deadline has passed."""
        return f"the scoring reached its limit of {self.describe()} while the submission's code or its programs ran"


@contextmanager
def deadline(limit_s: float) -> Iterator[Deadline]:
    """Within a ``with`` block, stop all sandboxed programs after ``limit_s`` seconds, and let no new ones start."""
    own = Deadline(limit_s)
    _deadlines.append(own)
    try:
        yield own
    finally:
        _deadlines.remove(own)


def violation() -> str:
    """Return the reason to stop all programs if the deadline has passed, and mark the deadline as enforced.

    Otherwise, return an empty string.
    """
    if not _deadlines or not _deadlines[-1].reached:
        return ""
    _deadlines[-1].enforced = True
    return _deadlines[-1].reason


@contextmanager
def charge_to_submission() -> Iterator[None]:
    """Charge the time of a ``with`` block to the submission.

    Use this for trusted work whose cost the submission controls, such as reading the submission's log. If the deadline
    has passed when the block ends, even with an exception, it is marked as enforced, so the submission is at fault.
    """
    try:
        yield
    finally:
        violation()


def raise_if_expired() -> None:
    """Raise a :class:`TimeLimitError` if the deadline has passed."""
    if reason := violation():
        raise TimeLimitError(reason)
