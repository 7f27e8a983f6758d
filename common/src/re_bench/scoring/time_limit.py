"""Limit the time of a scoring: stop untrusted code at the limit, and the scorer itself a little later."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.sandbox.deadline import TimeLimitError, deadline
from re_bench.sandbox.time_limits import MAX_STRETCH, TimeLimit, core_waits

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIN_GRACE_S = 5.0
_GRACE_SHARE = 0.1
_POLL_S = 0.1


class _OverdueError(BaseException):
    """Raised if the scorer takes too long. Not an Exception, so that ``except Exception`` does not catch it."""


def scorer_limit_s(limit_s: float) -> float:
    """Return the seconds after which a scorer has stopped itself, even on a busy machine."""
    return MAX_STRETCH * _with_grace(limit_s)


def _with_grace(limit_s: float) -> float:
    """Return the limit plus the time in which the scorer must finish after its sandboxed programs are stopped."""
    return limit_s + max(_MIN_GRACE_S, _GRACE_SHARE * limit_s)


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Stop sandboxed programs in the block after ``limit_s`` seconds, and the block a little later.

    If a program is stopped at the limit, any later failure of the block counts as the submission's fault.

    Raises:
        TimeLimitError: if the limit was reached while a sandboxed program ran, or before the block started a program.
        ReBenchError: if the block took too long without a sandboxed program.
    """
    with deadline(limit_s) as limit:
        try:
            with _alarm(_with_grace(limit_s)):
                yield
        except (Exception, _OverdueError) as error:
            if limit.enforced:
                raise TimeLimitError(limit.reason) from error
            if isinstance(error, _OverdueError):
                raise ReBenchError(f"took longer than {limit_s:g} s while no sandboxed program ran") from None
            raise
        if limit.enforced:
            raise TimeLimitError(limit.reason)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise _OverdueError in the block after ``seconds``, but only in the main thread, which receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limit = TimeLimit(seconds, core_waits, started=True)
    limit.check()

    def ring(_number: int, _frame: object) -> None:
        if limit.reached:
            raise _OverdueError
        signal.setitimer(signal.ITIMER_REAL, max(limit.check(), _POLL_S))

    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
