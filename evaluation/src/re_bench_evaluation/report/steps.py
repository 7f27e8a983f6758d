"""What an agent did between its attempts: from the trace of an mlab run, else from its server's transcript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.data.jsonl import json_object, read_lines
from re_bench.runs.elapsed import seconds_since_1970
from re_bench_evaluation.report.run_data import Step
from re_bench_evaluation.report.text import as_finite, shortened, valid_unicode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from re_bench_evaluation.report.run_data import AttemptInfo
    from re_bench_evaluation.report.sources import RunFiles

_ATTEMPTS = {"Score", "Final Answer", "answer"}
"""Actions and tools that are attempts themselves."""
_LONGEST_TITLE = 80
_LONGEST_TEXT = 400
_LONGEST_OUTPUT = 300
_KIND_WITHIN = 40
"""Bytes of a line by which its kind is there; lines of other kinds, which may be long, are not read."""


@dataclass(frozen=True)
class TimedStep:
    """A step and when it ended, in seconds since 1970."""

    ended: float
    title: str
    text: str
    output: str


def read_steps(files: RunFiles) -> list[TimedStep]:
    """Return the steps of a run, in order of time; none where nothing tells of them.

    Raises:
        OSError: if a trace or transcript cannot be read.
    """
    if files.trace is not None:
        steps = _steps_of_trace(files.trace)
    elif files.transcript is not None:
        steps = _steps_of_transcript(files.transcript)
    else:
        return []
    return sorted(steps, key=lambda step: step.ended)


def steps_before(
    attempts: Sequence[AttemptInfo], steps: Sequence[TimedStep], began: float | None, room: int
) -> list[tuple[tuple[Step, ...], int]]:
    """Return for each attempt the steps since the one before, and how many of these were left out: the earliest.

    Args:
        attempts: of one run.
        steps: in order of time.
        began: when the run began, in seconds since 1970, for attempts whose own clock is not known. Steps before others
            are on that clock, without the server's start and stops; before a stop, not earlier than they can be.
        room: characters that the steps before one attempt may have.
    """
    result, position, least = [], 0, 0.0
    for attempt in attempts:
        end, first = seconds_since_1970(attempt.time), position
        while position < len(steps) and (end is None or steps[position].ended <= end):
            position += 1
        own = steps[first:position]
        kept = _last_of(own, room)
        start = began if end is None or attempt.wall_s is None else end - attempt.seconds - attempt.wall_s
        result.append((tuple(_step(one, start, least) for one in kept), len(own) - len(kept)))
        least = attempt.wall_s or least
    return result


def _last_of(steps: Sequence[TimedStep], room: int) -> Sequence[TimedStep]:
    """Return as many of the last steps as there is room for."""
    for count, step in enumerate(reversed(steps)):
        room -= len(step.title) + len(step.text) + len(step.output)
        if room < 0:
            return steps[len(steps) - count :]
    return steps


def _step(step: TimedStep, began: float | None, least: float) -> Step:
    time_s = None if began is None else round(max(least, step.ended - began), 1)
    return Step(time_s, step.title, step.text, step.output)


def _steps_of_trace(path: Path) -> Iterator[TimedStep]:
    """Yield the actions of an mlab run with their observations."""
    action: dict[str, Any] = {}
    for event in _entries(path, (b"action", b"observation")):
        if event.get("kind") == "action":
            action = event
            continue
        title = str(action.get("action", ""))
        if title and title not in _ATTEMPTS:
            yield _timed(event.get("time"), title, _arguments(action.get("input")), event.get("text"))
        action = {}


def _arguments(values: object) -> str:
    if isinstance(values, dict):
        return "\n".join(f"{name}: {value}" for name, value in values.items())
    return str(values or "")


def _steps_of_transcript(path: Path) -> Iterator[TimedStep]:
    """Yield the commands of a session."""
    for entry in _entries(path, (b"call",)):
        tool, arguments = str(entry.get("tool")), entry.get("arguments")
        if tool not in _ATTEMPTS:
            command = arguments.get("command", "") if isinstance(arguments, dict) else ""
            yield _timed(seconds_since_1970(entry.get("time")), tool, command, entry.get("output"))


def _entries(path: Path, kinds: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of some kinds."""
    marks = [b'"%s"' % kind for kind in kinds]
    for line in read_lines(path):
        start = line[:_KIND_WITHIN]
        if any(mark in start for mark in marks) and (entry := json_object(line)) is not None:
            yield entry


def _timed(ended: object, title: str, text: object, output: object) -> TimedStep:
    seconds = as_finite(ended) or 0.0
    return TimedStep(
        seconds,
        shortened(valid_unicode(title), _LONGEST_TITLE),
        shortened(valid_unicode(str(text)), _LONGEST_TEXT),
        shortened(valid_unicode(str(output or "")), _LONGEST_OUTPUT),
    )
