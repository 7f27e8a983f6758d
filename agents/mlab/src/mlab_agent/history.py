"""Which events of a trace count: ``resume --from-step`` sets aside those that came after a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mlab_agent.state import Event

REWIND = "rewind"
"""The kind of the event with which a run goes back to a step."""


def histories(events: Iterable[Event]) -> list[list[Event]]:
    """Return the history before each rewind, the oldest first, and the present one last."""
    result: list[list[Event]] = [[]]
    for event in events:
        if event["kind"] == REWIND:
            result.append(until_step(result[-1], event["step"]))
        result[-1].append(event)
    return result


def until_step(history: Sequence[Event], step: int) -> list[Event]:
    """Return a history as it was right after a step; 0 is before the first one.

    Raises:
        ValueError: if it has no such step; the message says how many there are.
    """
    last = "observation" if step else "snapshot"
    ends = [index for index, event in enumerate(history) if event["kind"] == last]
    steps = count_steps(history)
    if not 0 <= step <= steps or not ends:
        raise ValueError(f"there is no step {step}: the run has {steps}")
    return list(history[: ends[max(step - 1, 0)] + 1])


def count_steps(history: Iterable[Event]) -> int:
    """Return how many steps a history has."""
    return sum(event["kind"] == "observation" for event in history)


def last_snapshot(history: Iterable[Event]) -> str | None:
    """Return the name of the workspace's last snapshot in a history; None if there is none yet."""
    names = [
        event["name"] if event["kind"] == "snapshot" else event["snapshot"]
        for event in history
        if event["kind"] in {"snapshot", "observation"}
    ]
    return next((name for name in reversed(names) if name), None)


def journal_after(history: Sequence[Event], step: int) -> int | None:
    """Return the position of the undo journal right after a step; None if nothing was begun since."""
    later = history[len(until_step(history, step)) :]
    return next((event["journal"] for event in later if event["kind"] == "action"), None)
