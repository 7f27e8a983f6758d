"""How long validations took and what has changed since the last ones, in a few lines."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from re_bench.tables import clock, number, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench.runs.validation_history import Change, Comparison


def describe_changes(comparisons: Sequence[Comparison]) -> str:
    """Return a block with a line for each validation: its time, that of the last one here, and below what changed."""
    lines = [line for comparison in comparisons for line in _lines(comparison)]
    return "\n".join(["since the last validation on this machine:", *lines])


def _lines(comparison: Comparison) -> Iterator[str]:
    now, before = comparison.now, comparison.before
    took = f"  {now.task}, profile {now.profile}: took {clock(now.seconds)}"
    if before is None:
        yield f"{took}; nothing to compare with"
        return
    time = dt.datetime.fromisoformat(before.time).astimezone().strftime("%Y-%m-%d %H:%M")
    yield f"{took}, {clock(before.seconds)} on {time}" + ("" if comparison.changes else "; nothing changed")
    for change in comparison.changes:
        yield f"    {printable(_text(change))}"


def _text(change: Change) -> str:
    if change.what in {"new", "gone"}:
        return f"{change.solution}: {change.what}"
    if change.what == "seconds":
        then, now = (f"{value:.1f} s" if isinstance(value, float) else "-" for value in (change.before, change.after))
        return f"{change.solution}: time {then} -> {now}"
    then, now = map(_value, (change.before, change.after))
    return f"{change.solution}: {change.what} {then} -> {now}" if change.solution else f"{change.what} {then} -> {now}"


def _value(value: float | str | None) -> str:
    return "none" if value is None else value if isinstance(value, str) else number(value)
