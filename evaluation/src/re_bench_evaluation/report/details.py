"""The long parts of a report, diffs and steps of every attempt, as far as there is room for them.

Names, contents and sizes of a submission's files are an agent's, and so bounded.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from re_bench.runs.elapsed import seconds_since_1970
from re_bench_evaluation.report.data import Diff, FileDiff, Step
from re_bench_evaluation.report.text import shortened, valid_unicode
from re_bench_evaluation.trajectory import SCORING, arguments_text, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench_evaluation.report.data import AttemptInfo, FileChange, RunInfo
    from re_bench_evaluation.report.sources import RunFiles, Source

_LEAST = 1000
_LONGEST_DIFF = 8000
_LONGEST_STEPS = 4000
_LONGEST_TITLE = 80
_LONGEST_TEXT = 400
_LONGEST_OUTPUT = 300
_MAX_FILES = 400
"""Of a submission that are looked at."""
_SHOWN_FILES = 40
"""Of a diff."""
_MAX_COMPARED = 64 << 20
"""Bytes of a file; of longer ones only the sizes are compared."""
_MAX_TEXT = 128 << 10
"""Bytes of a file whose lines are compared."""
_MAX_PAIRS = 50_000
"""Pairs of equal lines of two files; more take too long to be compared."""
_LONGEST_LINE = 300
_LONGEST_NAME = 200
_CONTEXT = 2
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Room:
    """Characters that diffs and steps may have in a whole report; runs share them equally."""

    diffs: int = 1_000_000
    steps: int = 1_000_000


def with_details(run: RunInfo, files: RunFiles, source: Source, room: Room, runs: int) -> RunInfo:
    """Return a run whose attempts have their diffs and the steps before them.

    Diffs come first where the reward so far rose, then in order, until the run's room is used: the other attempts have
    none. A report of fewer runs has room for more.

    Args:
        run: without them.
        files: where it lies.
        source: gets the problems.
        room: of the whole report.
        runs: how many runs share it.
    """
    attempts: Sequence[AttemptInfo] = run.attempts
    if not attempts:
        return run
    try:
        attempts = _with_diffs(attempts, files, max(_LEAST, room.diffs // runs))
    except OSError as error:
        source.problem(files.path, f"the copies of its submissions cannot be compared: {error.strerror or error}")
    try:
        attempts = _with_steps(run, attempts, files, max(_LEAST, room.steps // runs))
    except OSError as error:
        source.problem(files.path, f"what its agent did cannot be read: {error.strerror or error}")
    return replace(run, attempts=tuple(attempts))


def _with_diffs(attempts: Sequence[AttemptInfo], files: RunFiles, room: int) -> list[AttemptInfo]:
    log = files.log
    if log is None:
        return list(attempts)
    store = log.with_name(f"{log.name}.submissions")
    kept = [index for index, attempt in enumerate(attempts) if attempt.kept]
    before = dict(zip(kept[1:], kept, strict=False))
    diffs: dict[int, Diff] = {}
    for index in sorted(kept, key=lambda index: (not _rose(attempts, index), index)):
        earlier = attempts[before[index]] if index in before else None
        if earlier is not None and earlier.submission == attempts[index].submission:
            diffs[index] = Diff(earlier.n, ())
        elif room > 0:
            diff = _compared(store, earlier, attempts[index], min(room, _LONGEST_DIFF))
            room -= sum(len(file.text or "") + len(file.name) + len(file.reason) for file in diff.files)
            diffs[index] = diff
    return [replace(attempt, diff=diffs.get(index)) for index, attempt in enumerate(attempts)]


def _compared(store: Path, earlier: AttemptInfo | None, attempt: AttemptInfo, room: int) -> Diff:
    before = store / earlier.submission if earlier else None
    return compare(before, store / attempt.submission, earlier.n if earlier else None, room)


def _rose(attempts: Sequence[AttemptInfo], index: int) -> bool:
    now, before = attempts[index].so_far, attempts[index - 1].so_far if index else None
    return now is not None and (before is None or now > before)


def _with_steps(run: RunInfo, attempts: Sequence[AttemptInfo], files: RunFiles, room: int) -> list[AttemptInfo]:
    steps = read_steps(files)
    began = seconds_since_1970(run.began)
    before = steps_before(attempts, steps, began, min(_LONGEST_STEPS, room // len(attempts)))
    return [
        replace(attempt, steps=own, steps_left_out=left_out)
        for attempt, (own, left_out) in zip(attempts, before, strict=True)
    ]


class TimedStep(NamedTuple):
    """A step and when it ended, in seconds since 1970."""

    ended: float
    step: Step


def read_steps(files: RunFiles) -> list[TimedStep]:
    """Return what an agent did besides its attempts, in order of time; nothing where no file tells of it.

    Raises:
        OSError: if a trace or transcript cannot be read.
    """
    path = files.trace or files.transcript
    if path is None:
        return []
    trajectory, _torn = read_trajectory(path)
    steps = [
        TimedStep(step.ended or 0.0, _step(step.tool, arguments_text(step.arguments), step.output))
        for step in trajectory.steps
        if step.tool and step.tool not in SCORING and step.output is not None
    ]
    return sorted(steps, key=lambda step: step.ended)


def _step(title: str, text: str, output: str) -> Step:
    texts = zip((title, text, output), (_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_OUTPUT), strict=True)
    return Step(None, *(shortened(valid_unicode(text), longest) for text, longest in texts))


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
        result.append((tuple(_timed(one, start, least) for one in kept), len(own) - len(kept)))
        least = attempt.wall_s or least
    return result


def _last_of(steps: Sequence[TimedStep], room: int) -> Sequence[TimedStep]:
    """Return as many of the last steps as there is room for."""
    for count, (_ended, step) in enumerate(reversed(steps)):
        room -= len(step.title) + len(step.text) + len(step.output)
        if room < 0:
            return steps[len(steps) - count :]
    return steps


def _timed(step: TimedStep, began: float | None, least: float) -> Step:
    return replace(step.step, time_s=None if began is None else round(max(least, step.ended - began), 1))


class _File(NamedTuple):
    path: str
    size: int


def compare(before: Path | None, after: Path, against: int | None, room: int) -> Diff:
    """Return how one kept submission differs from another.

    Args:
        before: the directory of the earlier one; None for the first one.
        after: the directory of the later one.
        against: the earlier attempt's number.
        room: characters that the diffs of all files may have together.
    """
    old, more_old = _files(str(before)) if before else ({}, False)
    new, more_new = _files(str(after))
    changes = [(name, what) for name in sorted({*old, *new}) if (what := _change(old.get(name), new.get(name)))]
    files = []
    for name, change in changes[:_SHOWN_FILES]:
        text, reason = _text(old.get(name), new.get(name), max(room, 0))
        room -= len(text or "")
        files.append(FileDiff(shortened(valid_unicode(name), _LONGEST_NAME), change, text, reason))
    left_out = [f"{len(changes) - _SHOWN_FILES} more files"] if len(changes) > _SHOWN_FILES else []
    left_out += [f"files beyond the first {_MAX_FILES}"] if more_old or more_new else []
    return Diff(against, tuple(files), " and ".join(left_out))


@lru_cache(maxsize=64)
def _files(directory: str) -> tuple[dict[str, _File], bool]:
    """Return the plain files below a directory by their names, and whether there are more; no link is followed.

    It is kept for the comparison with the next one: copies are stored under their hash, and never change.
    """
    files: dict[str, _File] = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(directory, below)) as scan:  # noqa: PTH118 - paths as text are much quicker
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif entry.is_file(follow_symlinks=False):
                if len(files) == _MAX_FILES:
                    return files, True
                files[name] = _File(entry.path, entry.stat(follow_symlinks=False).st_size)
    return files, False


def _change(old: _File | None, new: _File | None) -> FileChange | None:
    """Return what became of a file; None if nothing did."""
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return None if _same(old, new) else "changed"


def _same(old: _File, new: _File) -> bool:
    if old.size != new.size or old.size > _MAX_COMPARED:
        return old.size == new.size
    if old.size <= _MAX_TEXT:
        return _content(old) == _content(new)
    with _open(old) as first, _open(new) as second:
        while chunk := first.read(_CHUNK):
            if chunk != second.read(_CHUNK):
                return False
    return True


def _open(file: _File) -> BinaryIO:
    return os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


@lru_cache(maxsize=128)
def _content(file: _File) -> bytes:
    with _open(file) as stream:
        return stream.read(_MAX_TEXT)


def _text(old: _File | None, new: _File | None, room: int) -> tuple[str | None, str]:
    """Return the diff of a file, or why it is not shown."""
    lines: list[list[str]] = []
    for file in (old, new):
        text: str | None = ""
        if file is not None:
            if file.size > _MAX_TEXT:
                return None, f"too long to be shown: {file.size} bytes"
            text = _decoded(file)
            if text is None:
                return None, f"binary, {file.size} bytes"
        lines.append([line[:_LONGEST_LINE] for line in (text or "").splitlines()])
    if _pairs(*lines) > _MAX_PAIRS:
        return None, "too many equal lines to be compared"
    if not room:
        return None, "left out: the report has no more room"
    return _bounded(_unified(*lines), room), ""


def _decoded(file: _File) -> str | None:
    content = _content(file)
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many pairs of equal lines there are, which the time of a comparison grows with."""
    counts = Counter(old)
    return sum(counts[line] for line in new)


def _unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    lines = difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")
    return (line for number, line in enumerate(lines) if number > 1)  # without the names


def _bounded(lines: Iterator[str], room: int) -> str:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, "[...]"])
        kept.append(line)
    return "\n".join(kept)
