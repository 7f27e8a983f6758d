"""Results of ``re-bench validate --json``, for what a report says of the tasks themselves."""

from __future__ import annotations

import datetime as dt
import json
import math
import statistics
from typing import TYPE_CHECKING, Any

from re_bench_evaluation.report.task_data import ValidationInfo, ValidationRow
from re_bench_evaluation.report.text import as_finite, plain_json, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Validations = dict[tuple[str, str], ValidationInfo]
"""By the task's name and the profile."""
_LONGEST = 300
_MAX_BYTES = 64 << 20


def read_validations(path: Path) -> Validations | None:
    """Return what a file says; None if it is no result of a validation.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES)
    if not content.lstrip().startswith(b"{") or b'"reports"' not in content:
        return None
    try:
        time = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC).isoformat(timespec="seconds")
        reports = plain_json(json.loads(content))["reports"]
        return {(report["task"], report["profile"]): _info(report, str(path), time) for report in reports}
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def newest(validations: Iterable[Validations]) -> Validations:
    """Return the newest validation of each task and profile."""
    ordered = sorted((one for file in validations for one in file.items()), key=lambda one: one[1].time)
    return dict(ordered)


def _info(report: dict[str, Any], source: str, time: str) -> ValidationInfo:
    return ValidationInfo(
        source=source,
        time=time,
        holds=bool(report["holds"]),
        rows=tuple(_row(row) for row in report["rows"]),
        note=str(report.get("note", "")),
        problems=tuple(map(str, report.get("problems", ()))),
        skipped=tuple(map(str, report.get("skipped", ()))),
    )


def _row(row: dict[str, Any]) -> ValidationRow:
    scores: Sequence[dict[str, Any]] = row["scores"]
    rewards = [reward for score in scores if (reward := as_finite(score["reward"])) is not None]
    raws = [raw for score in scores if (raw := as_finite(score["raw"])) is not None]
    return ValidationRow(
        variant=str(row["variant"]),
        status="/".join(dict.fromkeys(str(score["status"]) for score in scores)),
        raw=statistics.fmean(raws) if raws else None,
        reward=statistics.fmean(rewards) if rewards else None,
        spread=statistics.stdev(rewards) if len(rewards) > 1 else None,
        repeats=len(scores),
        seconds=math.fsum(as_finite(score["seconds"]) or 0.0 for score in scores),
        holds=bool(row["holds"]),
        verdict=shortened(str(row["verdict"]), _LONGEST),
    )
