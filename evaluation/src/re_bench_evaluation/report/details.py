"""The long parts of a report, diffs and steps of every attempt, as far as there is room for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from re_bench.runs.elapsed import seconds_since_1970
from re_bench_evaluation.report.diffs import compare
from re_bench_evaluation.report.run_data import Diff
from re_bench_evaluation.report.steps import read_steps, steps_before

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from re_bench_evaluation.report.run_data import AttemptInfo, RunInfo
    from re_bench_evaluation.report.sources import RunFiles, Source

_LEAST = 1000
_LONGEST_DIFF = 8000
_LONGEST_STEPS = 4000


@dataclass(frozen=True)
class Room:
    """Characters that diffs and steps may have in a whole report; runs share them equally."""

    diffs: int = 2_500_000
    steps: int = 2_500_000


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
    if files.files is None:
        return list(attempts)
    log = files.files.log
    store = log.with_name(f"{log.name}.submissions")
    kept = [index for index, attempt in enumerate(attempts) if attempt.kept]
    before = dict(zip(kept[1:], kept, strict=False))
    diffs: dict[int, Diff] = {}
    for index in sorted(kept, key=lambda index: (not _rose(attempts, index), index)):
        earlier = attempts[before[index]] if index in before else None
        if earlier is not None and earlier.submission == attempts[index].submission:
            diffs[index] = Diff(earlier.n, ())
        elif room > 0:
            diff = _diff(store, earlier, attempts[index], min(room, _LONGEST_DIFF))
            room -= sum(len(file.text or "") + len(file.name) + len(file.reason) for file in diff.files)
            diffs[index] = diff
    return [replace(attempt, diff=diffs.get(index)) for index, attempt in enumerate(attempts)]


def _diff(store: Path, earlier: AttemptInfo | None, attempt: AttemptInfo, room: int) -> Diff:
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
