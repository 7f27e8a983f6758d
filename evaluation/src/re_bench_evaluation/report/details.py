"""Add the agents' steps and the diffs of submissions to the attempts of a report, within a size limit.

The names, contents and sizes of a submission's files are untrusted.
"""

from __future__ import annotations

import difflib
import filecmp
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from re_bench.attempts.elapsed import seconds_since_1970
from re_bench.attempts.log import valid_unicode
from re_bench.attempts.store import Store
from re_bench_evaluation.logged_runs import plain_files
from re_bench_evaluation.report.data import Diff, FileDiff, Step
from re_bench_evaluation.report.text import shortened
from re_bench_evaluation.trajectory import SCORING, arguments_text, read_trajectory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from re_bench_evaluation.report.data import AttemptInfo, FileChange, RunInfo
    from re_bench_evaluation.report.sources import RunFiles, Source

_MIN_ROOM = 1000
_MAX_DIFF = 8000
_MAX_STEPS = 4000
_MAX_STEP = (80, 400, 300)
"""Maximum characters of a step's title, text and output."""
_MAX_FILES = 400
"""Maximum number of files compared per submission."""
_SHOWN_FILES = 40
"""Maximum number of files shown per diff."""
_MAX_COMPARED = 64 << 20
"""Larger files are compared by size only."""
_MAX_TEXT = 128 << 10
"""Larger files get no diff."""
_MAX_PAIRS = 50_000
"""Files with more pairs of equal lines get no diff, because comparing them takes too long."""
_MAX_LINE = 300
_MAX_NAME = 200
_CONTEXT = 2


@dataclass(frozen=True)
class Room:
    """Maximum characters of all diffs and of all steps in a report; each run gets an equal share."""

    diffs: int = 1_000_000
    steps: int = 1_000_000


def with_details(run: RunInfo, files: RunFiles, source: Source, room: Room, runs: int) -> RunInfo:
    """Return a run with diffs and steps added to its attempts.

    Attempts that improved the reward get diffs first, then the other attempts, until the run's share of ``room`` is
    used up. ``runs`` is the number of runs in the report. Problems are added to ``source``.
    """
    attempts: Sequence[AttemptInfo] = run.attempts
    if not attempts:
        return run
    try:
        attempts = _with_diffs(attempts, files, max(_MIN_ROOM, room.diffs // runs))
    except OSError as error:
        source.problem(files.path, f"cannot compare its submissions: {error.strerror or error}")
    try:
        steps, began = read_steps(files), seconds_since_1970(run.began)
    except OSError as error:
        source.problem(files.path, f"cannot read its trace or transcript: {error.strerror or error}")
    else:
        share = max(_MIN_ROOM, room.steps // runs) // len(attempts)
        before = steps_before(attempts, steps, began, min(_MAX_STEPS, share))
        attempts = [
            replace(attempt, steps=own, steps_left_out=left_out)
            for attempt, (own, left_out) in zip(attempts, before, strict=True)
        ]
    return replace(run, attempts=tuple(attempts))


def _with_diffs(attempts: Sequence[AttemptInfo], files: RunFiles, room: int) -> list[AttemptInfo]:
    if files.log is None:
        return list(attempts)
    store = Store(files.log).directory
    kept = [index for index, attempt in enumerate(attempts) if attempt.kept]
    before = dict(zip(kept[1:], kept, strict=False))
    diffs: dict[int, Diff] = {}
    for index in sorted(kept, key=lambda index: (not _rose(attempts, index), index)):
        earlier = attempts[before[index]] if index in before else None
        if earlier is not None and earlier.submission == attempts[index].submission:
            diffs[index] = Diff(earlier.n, ())
        elif room > 0:
            old, against = (store / earlier.submission, earlier.n) if earlier else (None, None)
            diff = compare(old, store / attempts[index].submission, against, min(room, _MAX_DIFF))
            room -= sum(len(file.text or "") + len(file.name) + len(file.reason) for file in diff.files)
            diffs[index] = diff
    return [replace(attempt, diff=diffs.get(index)) for index, attempt in enumerate(attempts)]


def _rose(attempts: Sequence[AttemptInfo], index: int) -> bool:
    now, before = attempts[index].so_far, attempts[index - 1].so_far if index else None
    return now is not None and (before is None or now > before)


class TimedStep(NamedTuple):
    """A step with its end time."""

    ended: float
    """Seconds since 1970."""
    step: Step


def read_steps(files: RunFiles) -> list[TimedStep]:
    """Return an agent's steps in order of time, without the steps that submit an attempt."""
    path, steps = files.trace or files.transcript, []
    for step in read_trajectory(path)[0].steps if path else ():
        if step.tool and step.tool not in SCORING and step.output is not None:
            texts = zip((step.tool, arguments_text(step.arguments), step.output), _MAX_STEP, strict=True)
            shown = Step(None, *(shortened(valid_unicode(text), longest) for text, longest in texts))
            steps.append(TimedStep(step.ended or 0.0, shown))
    return sorted(steps, key=lambda step: step.ended)


def steps_before(
    attempts: Sequence[AttemptInfo], steps: Sequence[TimedStep], began: float | None, room: int
) -> list[tuple[tuple[Step, ...], int]]:
    """Return, for each attempt, the last steps before it that fit into ``room``, and the number of omitted steps.

    The times of the steps are relative to the start of the run, and computed from the attempt's ``wall_s``, which
    excludes time in which the server was down. If ``wall_s`` is unknown, the run started at ``began``. ``steps`` are in
    order of time, and ``room`` is the maximum number of characters per attempt.
    """
    result, position, least = [], 0, 0.0
    for attempt in attempts:
        end, first = seconds_since_1970(attempt.time), position
        while position < len(steps) and (end is None or steps[position].ended <= end):
            position += 1
        own = steps[first:position]
        kept = _last_of(own, room)
        start = began if end is None or attempt.wall_s is None else end - attempt.seconds - attempt.wall_s
        timed = (
            replace(one.step, time_s=None if start is None else round(max(least, one.ended - start), 1)) for one in kept
        )
        result.append((tuple(timed), len(own) - len(kept)))
        least = attempt.wall_s or least
    return result


def _last_of(steps: Sequence[TimedStep], room: int) -> Sequence[TimedStep]:
    """Return the last steps whose texts have at most ``room`` characters in total."""
    for count, (_ended, step) in enumerate(reversed(steps)):
        room -= len(step.title) + len(step.text) + len(step.output)
        if room < 0:
            return steps[len(steps) - count :]
    return steps


def compare(before: Path | None, after: Path, against: int | None, room: int) -> Diff:
    """Compare the directories of two kept submissions; ``before`` is None for a run's first submission.

    ``against`` is the number of the earlier attempt, and ``room`` the maximum number of characters of the diffs.
    """
    old, new = (dict(islice(plain_files(path), _MAX_FILES)) if path else {} for path in (before, after))
    changes = [(name, change) for name in sorted({*old, *new}) if (change := _change(old.get(name), new.get(name)))]
    files = []
    for name, change in changes[:_SHOWN_FILES]:
        text, reason = _text(old.get(name), new.get(name), max(room, 0))
        room -= len(text or "")
        files.append(FileDiff(shortened(valid_unicode(name), _MAX_NAME), change, text, reason))
    left_out = [f"{len(changes) - _SHOWN_FILES} more files"] if len(changes) > _SHOWN_FILES else []
    left_out += [f"files beyond the first {_MAX_FILES}"] if _MAX_FILES in {len(old), len(new)} else []
    return Diff(against, tuple(files), " and ".join(left_out))


def _change(old: Path | None, new: Path | None) -> FileChange | None:
    """Return how a file changed; None if it is unchanged."""
    if old is None or new is None:
        return "added" if old is None else "removed"
    sizes = [file.stat().st_size for file in (old, new)]
    same = sizes[0] == sizes[1] and (sizes[0] > _MAX_COMPARED or filecmp.cmp(old, new, shallow=False))
    return None if same else "changed"


def _text(old: Path | None, new: Path | None, room: int) -> tuple[str | None, str]:
    """Return the diff of a file and an empty reason, or None and the reason why the diff is not shown."""
    lines: list[list[str]] = []
    for file in (old, new):
        size = file.stat().st_size if file else 0
        if size > _MAX_TEXT:
            return None, f"too long to show: {size} bytes"
        try:
            text = file.read_bytes().decode() if file else ""
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            return None, f"binary, {size} bytes"
        lines.append([line[:_MAX_LINE] for line in text.splitlines()])
    counts = Counter(lines[0])
    if sum(counts[line] for line in lines[1]) > _MAX_PAIRS:  # difflib's time is proportional to this
        return None, "too many equal lines to compare"
    if not room:
        return None, "left out: report size limit reached"
    kept: list[str] = []
    for line in islice(difflib.unified_diff(lines[0], lines[1], n=_CONTEXT, lineterm=""), 2, None):  # skip the header
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, "[...]"]), ""
        kept.append(line)
    return "\n".join(kept), ""
