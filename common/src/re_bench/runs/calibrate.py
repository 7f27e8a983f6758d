"""Measuring a task's anchors: baseline and reference, scored again and again, written back with their circumstances."""

from __future__ import annotations

import datetime as dt
import statistics
from typing import TYPE_CHECKING

from re_bench.data.provenance import hardware, versions
from re_bench.errors import ReBenchError
from re_bench.processes import run_program
from re_bench.runs.score_process import score_variant
from re_bench.task.manifest import Anchors, Source, Spread
from re_bench.task.manifest_edit import write_anchors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task

__all__ = ["calibrate"]

_DIGITS = 9


def calibrate(task: Task, profile: str, *, repeats: int, sandbox: str | None = None) -> Anchors:
    """Score baseline and reference ``repeats`` times each, interleaved, and write their means into ``task.toml``.

    The hardware and versions that a scorer names in its details (``hardware``, ``versions``) go before our own. Where
    a profile measures its anchors in every run, they are stored for the device that the scorer names.

    A task whose truth is computed has a program ``rebuild.py`` beside its scorer, which is run first.

    Raises:
        ReBenchError: if the truth cannot be rebuilt, one of the scores is not valid, or such a scorer names no device
            or several.
    """
    _rebuild(task, profile)
    scores: dict[str, list[Score]] = {"baseline": [], "reference": []}
    for seed in range(repeats):
        for variant, found in scores.items():
            found.append(_valid(task, variant, score_variant(task, variant, profile, sandbox, seed=seed)))
    starting, reference = ([score.raw for score in found if score.raw is not None] for found in scores.values())
    details = scores["reference"][0].details
    if task.manifest.profiles[profile].in_run:
        _check_device(task, [score for found in scores.values() for score in found])
    source = Source(
        kind="modelled" if task.manifest.profiles[profile].modelled else "measured",
        where=f"nox -s calibrate-{task.name}",
        hardware=str(details.get("hardware") or hardware()),
        date=dt.datetime.now(dt.UTC).date(),
        repeats=repeats,
        spread=Spread(starting=_spread(starting), reference=_spread(reference)),
        versions=versions() | {str(name): str(value) for name, value in dict(details.get("versions") or {}).items()},
    )
    anchors = Anchors(starting=_mean(starting), reference=_mean(reference), source=source)
    write_anchors(task.directory / "task.toml", profile, anchors)
    return anchors


def _rebuild(task: Task, profile: str) -> None:
    program = task.directory / "rebuild.py"
    if not program.is_file():
        return
    status, _nothing = run_program([str(program), "--profile", profile], capture=False)
    if status != 0:
        raise ReBenchError(f"{task.name}: the truth was not rebuilt: {program} ended with exit status {status}")


def _valid(task: Task, variant: str, score: Score) -> Score:
    if score.status != "valid":
        raise ReBenchError(
            f"{task.name}: {variant} is {score.status}, so there is nothing to calibrate: {score.message}"
        )
    return score


def _check_device(task: Task, scores: Sequence[Score]) -> None:
    """Raise unless all scores name one device: by its name the stored anchors are found again."""
    names = {str(score.details.get("hardware") or "") for score in scores}
    if len(names) > 1 or "" in names:
        found = ", ".join(sorted(name or "none" for name in names))
        raise ReBenchError(
            f"{task.name}: the scorer must name the same device in details['hardware'] every time; it named {found}"
        )


def _mean(raws: Sequence[float]) -> float:
    return round(statistics.fmean(raws), _DIGITS)


def _spread(raws: Sequence[float]) -> float:
    return round(statistics.stdev(raws), _DIGITS) if len(raws) > 1 else 0.0
