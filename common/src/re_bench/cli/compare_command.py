"""The command ``compare``: whether two validations came out the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.cli.command import Command, add_json, print_json
from re_bench.errors import ReBenchError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

Scores = list[dict[str, Any]]
Solutions = dict[tuple[str, str], Scores]
"""The scores of each solution, by task and profile and its name."""

_HEADER = ("task", "solution", "what", "before", "after")
_LONGEST = 60
_VARIES = re.compile(r"\S*(?:\d|/)\S*")
"""A word of a reason that may differ from run to run: a number, a hash, a path."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare two outputs of `re-bench validate --json`: the status of every solution, its raw score within the "
        "task's resolution, and the words of its reason. Exit status 1 if anything differs."
    )
    parser.add_argument("before", metavar="BEFORE.json", type=Path, help="an output of `re-bench validate --json`")
    parser.add_argument("after", metavar="AFTER.json", type=Path, help="another one")
    add_json(parser)


def _compare(options: argparse.Namespace) -> int:
    from re_bench.tables import printable, table

    differences = list(_differences(_solutions(options.before), _solutions(options.after)))
    if options.json:
        print_json({"differences": [dict(zip(_HEADER, difference, strict=True)) for difference in differences]})
    elif differences:
        print(table(_HEADER, [[printable(_shown(cell)) for cell in difference] for difference in differences]))
    else:
        print("no differences")
    return 1 if differences else 0


def _solutions(path: Path) -> Solutions:
    """Return what is compared of the output of a validation.

    Raises:
        UsageError: if it is none.
    """
    try:
        reports = json.loads(path.read_text(encoding="utf-8"))["reports"]
        return {
            (f"{report['task']}/{report['profile']}", row["variant"]): [dict(score) for score in row["scores"]]
            for report in reports
            for row in report["rows"]
        }
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: is not the output of `re-bench validate --json`") from None


def _differences(before: Solutions, after: Solutions) -> Iterator[tuple[str, str, str, object, object]]:
    """Yield task, solution, what differs, and how it was before and is after."""
    for key in {**before, **after}:
        then, now = before.get(key), after.get(key)
        if then is None or now is None:
            yield (*key, "presence", "missing" if then is None else "there", "missing" if now is None else "there")
        elif _statuses(then) != _statuses(now):
            yield (*key, "status", _statuses(then), _statuses(now))
        else:
            raw_then, raw_now = _mean_raw(then), _mean_raw(now)
            if raw_then is not None and raw_now is not None and abs(raw_now - raw_then) > _resolution(key[0]):
                yield (*key, "raw", raw_then, raw_now)
            reason_then, reason_now = (str(side[0].get("message", "")) if side else "" for side in (then, now))
            if _VARIES.sub("#", reason_then).split() != _VARIES.sub("#", reason_now).split():
                yield (*key, "reason", reason_then, reason_now)


def _statuses(scores: Scores) -> str:
    return "/".join(dict.fromkeys(str(score.get("status")) for score in scores))


def _mean_raw(scores: Scores) -> float | None:
    raws = [raw for score in scores if isinstance(raw := score.get("raw"), int | float)]
    return sum(raws) / len(raws) if raws else None


def _resolution(task: str) -> float:
    """Return the least difference of raw scores that counts; 1e-9 where the task rounds nothing, or is not here."""
    from re_bench.task.discovery import find_task

    try:
        resolution = find_task(task.partition("/")[0]).manifest.resolution
    except ReBenchError:
        resolution = None
    return (resolution or 0.0) + 1e-9


def _shown(cell: object) -> str:
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


COMMANDS = (
    Command(
        "compare",
        "compare two validations, given by their JSON",
        _options,
        _compare,
        group="benchmark maintainers",
        examples=("re-bench compare before.json after.json",),
    ),
)
