"""Does a task still hold? Its baseline scores about 0, its reference about 1, and no cheat pays."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import stopping_threads, temporary_directory
from re_bench.report.tables import number, table
from re_bench.runs.score_process import score_submission, score_variant
from re_bench.scoring.score import Score
from re_bench.task.prepare import run_preparation
from re_bench.task.workspace import variants

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench.task.discovery import Task

__all__ = ["Report", "Row", "default_jobs", "default_repeats", "mean", "validate"]

_HEADER = ("solution", "status", "raw", "reward", "spread", "n", "seconds", "verdict")
_REASON_SHOWN = 150
_ANCHORED = ("baseline", "reference")
_GIVEN = "--solution"
_LONGEST_FIRST = ("reference", "baseline", _GIVEN)
"""What is started before the cheats, so that scorings at the same time end together."""
_REPEATS = 3
_STARTING = 2
"""Scorings that may start while another holds the GPU."""


@dataclass(frozen=True)
class Row:
    """One of our solutions, scored once or more, and whether it came out as it must."""

    variant: str
    scores: Sequence[Score]
    holds: bool
    verdict: str
    """Why it holds or not, in words."""

    @property
    def reward(self) -> float | None:
        """The mean reward over the repeats, or None if one of them was not valid."""
        return mean([score.reward for score in self.scores])

    @property
    def spread(self) -> float | None:
        """The standard deviation of the reward over the repeats."""
        rewards = [score.reward for score in self.scores if score.reward is not None]
        return statistics.stdev(rewards) if len(rewards) > 1 else None

    def cells(self) -> list[str]:
        """Return the row of the table."""
        raw = mean([score.raw for score in self.scores])
        statuses = "/".join(dict.fromkeys(score.status for score in self.scores))
        seconds = sum(score.seconds for score in self.scores)
        verdict = f"{'ok' if self.holds else 'FAILED'}: {self.verdict}"
        figures = [number(raw), number(self.reward), number(self.spread), str(len(self.scores)), f"{seconds:.1f}"]
        return [self.variant, statuses, *figures, verdict]


@dataclass(frozen=True)
class Report:
    """The outcome of validating one task in one profile."""

    task: str
    profile: str
    rows: Sequence[Row]
    note: str = ""
    """What a reader must know of the figures, such as that they are modelled."""
    problems: Sequence[str] = field(default_factory=list)
    """What is wrong with the task as a whole."""
    skipped: Sequence[str] = ()
    """The cheats that make no sense in this profile, so that they were not scored."""

    @property
    def holds(self) -> bool:
        """Whether every solution came out as it must and nothing else is wrong."""
        return not self.problems and all(row.holds for row in self.rows)

    def text(self) -> str:
        """Return the table with a line above and, where something is wrong, lines below."""
        title = f"{self.task}, profile {self.profile}" + (f" ({self.note})" if self.note else "")
        return "\n".join([title, table(_HEADER, [row.cells() for row in self.rows]), *self.problems])


def validate(
    task: Task,
    profile: str,
    *,
    repeats: int = 1,
    jobs: int = 1,
    sandbox: str | None = None,
    solution: Path | None = None,
) -> Report:
    """Score baseline, reference and every cheat of a task that makes sense in the profile, which is prepared first.

    A solution that cannot be laid out, made or scored gets the status ``error``, and the others are scored all the
    same. The cheats find copies of the same prepared files; baseline and reference find new ones every time.

    Args:
        task: the task.
        profile: ``cpu``, ``gpu`` or ``paper``.
        repeats: how often baseline and reference are scored.
        jobs: scorings at a time; more than one only where they do not disturb each other's measurements.
        sandbox: a backend's name, if not the default.
        solution: the directory of a submission to score beside ours.

    Raises:
        UsageError: if this cannot be done here.
        ReBenchError: if the profile cannot be prepared.
    """
    started = time.monotonic()
    skipped = _skipped(task, profile)
    names = [*(name for name in variants(task) if name not in skipped), *([_GIVEN] if solution else [])]
    if skipped:
        print(f"{task.name}: {_not_run(profile, skipped)}", file=sys.stderr, flush=True)
    with temporary_directory("re-bench-prepared-") as place:
        prepared = _prepared(task, profile, place / "prepared")

        def scored(name: str, seed: int) -> Score:
            score = _scored(task, name, profile, sandbox, solution=solution, prepared=prepared, seed=seed)
            line = f"{task.name}: {name}: {score.status} {number(score.reward)}"
            print(f"[{time.monotonic() - started:6.1f} s] {line}", file=sys.stderr, flush=True)
            return score

        order = [(name, seed) for name in _by_length(names) for seed in range(repeats if name in _ANCHORED else 1)]
        scores: dict[str, list[Score]] = {name: [] for name in names}
        with _workers(jobs, apart=task.manifest.profiles[profile].parallel) as pool:
            for (name, _seed), score in zip(order, pool.map(scored, *zip(*order, strict=True)), strict=True):
                scores[name].append(score)
    rows = [_row(task, name, found, scores["baseline"]) for name, found in scores.items()]
    return Report(task.name, profile, rows, _note(task, profile, skipped), _problems(task), skipped)


def _prepared(task: Task, profile: str, place: Path) -> Path | None:
    """Prepare the profile, lay the prepared files out in the new directory ``place``, and return it if there are any.

    Nothing else is laid out there, and nobody but us gets to see it.
    """
    place.mkdir(mode=0o755)
    return place if run_preparation(task, profile, place) else None


@contextmanager
def _workers(jobs: int, *, apart: bool) -> Iterator[ThreadPoolExecutor]:
    """Give as many threads as ``jobs``; if ``apart``, each has its share of the cores, as have the programs it runs.

    Programs start as many threads as they have cores. Together they would have too many, which wait for each other.
    If the block fails, or we are stopped, the programs are ended, and jobs that wait are not begun.
    """
    cores = sorted(os.sched_getaffinity(0))
    shares = iter([cores[job % len(cores) :: jobs] for job in range(jobs)])
    pool = ThreadPoolExecutor(jobs, initializer=lambda: os.sched_setaffinity(0, next(shares)) if apart else None)
    try:
        yield pool
    except BaseException:
        with stopping_threads():
            pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _by_length(names: Sequence[str]) -> list[str]:
    """Return the solutions in the order in which they are started."""
    return [
        *(name for name in _LONGEST_FIRST if name in names),
        *(name for name in names if name not in _LONGEST_FIRST),
    ]


def _skipped(task: Task, profile: str) -> list[str]:
    unfit = {name for name, cheat in task.manifest.cheats.items() if not cheat.runs_on(profile)}
    return [f"cheats/{name}" for name in task.cheats if name in unfit]


def _not_run(profile: str, skipped: Sequence[str]) -> str:
    return f"not run, as they make no sense in profile {profile}: {', '.join(skipped)}"


def _note(task: Task, profile: str, skipped: Sequence[str]) -> str:
    entry = task.manifest.profiles[profile]
    notes = ["modelled, not measured"] if entry.modelled else []
    notes += ["anchors measured in the run"] if entry.in_run else []
    return "; ".join(notes + ([_not_run(profile, skipped)] if skipped else []))


def _scored(
    task: Task, name: str, profile: str, sandbox: str | None, *, solution: Path | None, prepared: Path | None, seed: int
) -> Score:
    """Score one solution; what fails of ours is said on stderr in full and becomes a score with the status error."""
    started = time.monotonic()
    try:
        if solution is not None and name == _GIVEN:
            return score_submission(task, solution, profile, sandbox)
        return score_variant(task, name, profile, sandbox, None if name in _ANCHORED else prepared, seed=seed)
    except UsageError:
        raise
    except (ReBenchError, OSError) as error:
        print(f"{task.name}: {name}: {error}", file=sys.stderr, flush=True)
        seconds = round(time.monotonic() - started, 3)
        return Score(task.name, profile, "error", None, None, str(error), {}, seconds)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if one of the values is missing."""
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if len(present) == len(values) else None


def _row(task: Task, variant: str, scores: Sequence[Score], baseline: Sequence[Score]) -> Row:
    if variant in _ANCHORED:
        holds, verdict = _judge_anchor(task, variant, scores)
    elif variant.startswith("cheats/"):
        floor = mean([score.reward for score in baseline])
        holds, verdict = _judge_cheat(task, variant.removeprefix("cheats/"), scores[0], floor)
    else:
        holds, verdict = scores[0].status == "valid", _brief(scores[0].message)
    return Row(variant, scores, holds, verdict)


def _judge_anchor(task: Task, variant: str, scores: Sequence[Score]) -> tuple[bool, str]:
    for score in scores:
        if score.status != "valid":
            return False, f"must be valid: {_brief(score.message)}"
        if score.reward is None:
            return False, f"no anchors for profile {score.profile}; run nox -s calibrate-{task.name}"
    tolerance = getattr(task.manifest.profiles[scores[0].profile].tolerance, variant)
    wanted = 0.0 if variant == "baseline" else 1.0
    worst = max(scores, key=lambda score: abs((score.reward or 0.0) - wanted))
    within = abs((worst.reward or 0.0) - wanted) <= tolerance
    return within, f"reward {wanted:g} +- {tolerance:g}" + ("" if within else f", got {worst.reward:.4f}")


def _judge_cheat(task: Task, name: str, score: Score, floor: float | None) -> tuple[bool, str]:
    entry = task.manifest.cheats.get(name)
    wanted = entry.expectation(score.profile) if entry is not None else None
    if score.status == "error":
        return False, f"must be refused: {_brief(score.message)}"
    if score.status == "valid":
        if floor is None:
            return False, "must be compared with the baseline, which has no reward"
        expected = wanted is not None and wanted.expect == "no_better"
        margin = task.manifest.profiles[score.profile].tolerance.baseline
        harmless = score.reward is not None and score.reward <= floor + margin
        return expected and harmless, "no better than the baseline" if harmless else "it pays"
    reason = wanted.reason if wanted is not None else None
    if reason is not None and not re.search(reason, score.message):
        return False, f"refused for another reason than /{reason}/: {_brief(score.message)}"
    return True, f"refused: {_brief(score.message)}"


def _problems(task: Task) -> list[str]:
    listed, present = set(task.manifest.cheats), set(task.cheats)
    where = task.directory / "task.toml"
    lines = [f"{where}: cheats.{name}: there is no directory cheats/{name}" for name in sorted(listed - present)]
    return lines + [f"{where}: cheats/{name} has no table [cheats.{name}]" for name in sorted(present - listed)]


def _brief(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _REASON_SHOWN else line[: _REASON_SHOWN - 3] + "..."


def default_jobs(task: Task, profile: str) -> int:
    """Return how many scorings to run at a time.

    On a GPU a few start while one is timed, since the GPU has a lock, if there are enough cores not to disturb it.
    Elsewhere as many as we have cores where the manifest says ``parallel``, else one.
    """
    cores, entry = len(os.sched_getaffinity(0)), task.manifest.profiles[profile]
    if entry.device == "cuda":
        return min(_STARTING + 1, max(1, cores // 4))
    return cores if entry.parallel else 1


def default_repeats(task: Task) -> int:
    """Return how often to score baseline and reference: once where the reference has to be made, which takes long.

    The manifest may say otherwise, where what is made differs from seed to seed.
    """
    made = task.manifest.reference
    return _REPEATS if made is None else made.repeats
