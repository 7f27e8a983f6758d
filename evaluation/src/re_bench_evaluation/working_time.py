"""Wall-clock and working time of a run, from its session's clock and what its agent has waited for.

The server leaves out what it knows of itself: the time in which it was down, and what it made a session wait for (see
:class:`re_bench.attempts.log.Attempt`). What an agent waited for elsewhere, such as a model's server that is
overloaded, it writes into the file that the environment variable ``RE_BENCH_WAITS`` names, a line of JSON each:
``{"began": s, "ended": s, "reason": "..."}``. That file is the agent's word: one that lies gets more time by it. What
cannot be is left out: waits outside of the run, twice, or while a submission of the agent was being scored.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from re_bench.attempts.elapsed import Elapsed, Interval, common, seconds_since_1970, total_s, without
from re_bench.data.jsonl import json_object, read_lines
from re_bench.errors import ReBenchError
from re_bench.records import SESSION, Amount, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from re_bench.attempts.log import Attempt

_LONGEST = 4 << 20
"""Bytes of the file of waits, which is read twice a second: some 40,000 lines."""


class SessionSummary(Record):
    """What evaluations and reports use of a session's record; what is not known is None."""

    task: str = ""
    profile: str = ""
    state: str = ""
    opened: str | None = None
    ended: str | None = None
    reason: str | None = None
    used_s: Amount | None = None
    waited_s: Amount | None = None
    """How long the server has made the session wait."""
    model_dollars: Amount | None = None
    scoring_model_dollars: Amount | None = None
    periods: tuple[tuple[float, float], ...] = ()

    @classmethod
    def file_name(cls) -> str:
        """Return the name of the file."""
        return SESSION

    @classmethod
    def read(cls, session: Path | None) -> Self | None:
        """Return the record in a session's directory; None if there is none that can be read."""
        with suppress(ReBenchError):
            return None if session is None else cls.load(session)
        return None

    @property
    def task_dollars(self) -> float | None:
        """What the task's own model has cost."""
        known = [cost for cost in (self.model_dollars, self.scoring_model_dollars) if cost is not None]
        return sum(known) if known else None


def working_time(
    periods: Sequence[Interval], at: float, waits: Iterable[Interval] = (), *, clock: Elapsed | None = None
) -> Elapsed:
    """Return how much wall-clock and working time of a run is over at a moment.

    Of ``waits`` counts what lies within the run's periods and before the moment, once where they overlap.

    Args:
        periods: when the run went on; between them it was paused, or its server was down.
        at: the moment, in seconds since 1970.
        waits: when its agent waited for others.
        clock: what the session's own clock showed at the moment, which knows the server's waits too; None where there
            is none, and then the periods are the clock.

    Returns:
        The times, of which ``0 <= working_s <= wall_s`` holds.
    """
    past = common(periods, [Interval(-math.inf, at)])
    if clock is None:
        seconds = total_s(past)
        clock = Elapsed(seconds, seconds)
    waited_s = total_s(common(past, waits))
    return Elapsed(clock.wall_s, max(0.0, min(clock.working_s, clock.wall_s) - waited_s))


def attempt_times(
    attempts: Iterable[Attempt], periods: Sequence[Interval], waits: Iterable[Interval] = ()
) -> list[Elapsed | None]:
    """Return for each attempt when it was handed in; None where its log does not tell.

    Where a log has no clock, which early ones have not, an attempt was handed in its ``seconds`` before its ``time``.
    A later attempt never has less time than an earlier one.

    Args:
        attempts: of one run, in the order of the log.
        periods: as :func:`session_periods` returns them; without any, an attempt needs a clock of its own.
        waits: as :func:`read_waits` returns them.
    """
    attempts, waits, times, latest = list(attempts), list(waits), [], Elapsed(0.0, 0.0)
    waits = without(waits, scorings(attempts)) if waits else waits
    for attempt in attempts:
        elapsed = _handed_in(attempt, periods, waits)
        if elapsed is not None:
            latest = elapsed = Elapsed(max(latest.wall_s, elapsed.wall_s), max(latest.working_s, elapsed.working_s))
        times.append(elapsed)
    return times


def scorings(attempts: Iterable[Attempt]) -> list[Interval]:
    """Return when submissions were being scored, which is no time in which their agent waited for others."""
    scored = ((seconds_since_1970(attempt.time), attempt.seconds) for attempt in attempts)
    return [Interval(time - seconds, time) for time, seconds in scored if time is not None]


def _handed_in(attempt: Attempt, periods: Sequence[Interval], waits: list[Interval]) -> Elapsed | None:
    clock = attempt.submitted_at
    scored = seconds_since_1970(attempt.time)
    if scored is None or not periods:
        return clock
    return working_time(periods, scored - attempt.seconds, waits, clock=clock)


def read_waits(path: Path) -> list[Interval]:
    """Return what an agent has written of its waits. Lines that are damaged or impossible are left out.

    A file that does not exist, is no plain file, or is longer than 4 MiB, counts as empty.
    """
    lines: list[dict[str, Any]] = []
    with suppress(OSError):
        lines = [entry for line in read_lines(path, _LONGEST) if (entry := json_object(line)) is not None]
    waits = []
    for line in lines:
        with suppress(ValueError, TypeError, KeyError):
            waits.append(_interval(line["began"], line["ended"]))
    return waits


def session_periods(session: Path) -> list[Interval]:
    """Return when a session went on, from the record in its directory; the last period goes on, unless it is paused.

    A record of an early version tells when it was opened; of a directory without a record nothing is known.
    """
    record = SessionSummary.read(session)
    if record is None:
        return []
    try:
        periods = [_interval(*pair) for pair in record.periods]
    except ValueError:
        return []
    if not periods:
        opened = seconds_since_1970(record.opened)
        return [] if opened is None else [Interval(opened)]
    return periods if record.state == "paused" else [*periods[:-1], Interval(periods[-1].began)]


def _interval(began: object, ended: object) -> Interval:
    """Return an interval of what a file says; raise ValueError or TypeError if it is none."""
    if not isinstance(began, int | float) or not isinstance(ended, int | float):
        raise TypeError(f"an interval is two numbers, got {began!r} and {ended!r}")
    if not (0 <= began <= ended <= sys.float_info.max):  # an integer of JSON may be larger
        raise ValueError(f"an interval ends after it began, got {began} and {ended}")
    return Interval(float(began), float(ended))
