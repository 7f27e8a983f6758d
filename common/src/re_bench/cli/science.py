"""Write the table of ``docs/science.md`` from manifests, anchors and records: ``python -m re_bench.cli.science``.

A task's ``records.toml`` lists methods with results that a person measured once. The raw scores of baseline and
reference are the anchors.
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.normalise import normalise
from re_bench.task.discovery import open_task
from re_bench.task.manifest import KINDS, RECORDS, Record, Records
from re_bench.task.manifest_file import ManifestError, read_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from re_bench.task.discovery import TaskFolder
    from re_bench.task.manifest import Anchors

_TOP = Path(__file__).resolve().parents[4]
_TABLE = re.compile(r"(<!-- table: results -->\n).*?(<!-- end of table -->)", re.DOTALL)
_HEADER = (
    "task", "profile", "kind", "method", "value", "raw", "reward", "seconds", "hardware", "spread", "n", "date",
)  # fmt: skip


def with_table(text: str, tasks: Sequence[TaskFolder]) -> str:
    """Return ``text``, the content of the page, with the table rebuilt from the files of ``tasks``.

    Raises:
        ManifestError: if a task's records are malformed, missing, or for an unknown profile.
    """
    rows = [row for task in tasks for row in rows_of(task)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (_HEADER, ["---"] * len(_HEADER), *rows)]
    return _TABLE.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)


def rows_of(task: TaskFolder) -> Iterator[list[str]]:
    """Yield a task's rows, sorted by profile, then by kind, then as in the task's ``records.toml``."""
    path = task.directory / RECORDS
    file = read_table(path, Records)
    unknown = {record.profile for record in file.records} - set(task.manifest.profiles)
    if unknown:
        raise ManifestError(f"{path}: task.toml has no profile {name!r}" for name in sorted(unknown))
    for name, profile in task.manifest.profiles.items():
        anchors = profile.anchors or next(iter(profile.devices), None)
        records = [record for record in file.records if record.profile == name]
        for kind in KINDS:
            chosen = [record for record in records if record.kind == kind]
            if not chosen and kind in ("baseline", "reference") and anchors:
                chosen = [Record(profile=name, kind=kind, method=f"the {kind}")]
            yield from ([task.name, name, kind, *_cells(record, file, anchors)] for record in chosen)


def _cells(record: Record, file: Records, anchors: Anchors | None) -> list[str]:
    floor, raw, value = file.floors.get(record.profile, 0.0), file.raw_of(record), record.value
    spread, n, hardware, date = record.spread, record.n, record.hardware, record.date
    if record.kind in ("baseline", "reference") and anchors:
        source = anchors.source
        raw = anchors.starting if record.kind == "baseline" else anchors.reference
        value = floor + math.exp(raw) if file.value else None
        if source.spread and source.repeats != 1:
            spread = source.spread.starting if record.kind == "baseline" else source.spread.reference
        n, hardware, date = source.repeats, source.hardware or source.kind, source.date
    reward = None if anchors is None or raw is None else normalise(raw, anchors.starting, anchors.reference)
    figures = [_number(value, 4), _number(raw, 3), _number(reward, 2)]
    rest = [record.seconds or "", hardware or "", _number(spread, 4), str(n or ""), str(date or "")]
    return [record.method.replace("|", "\\|"), *figures, *rest]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def main() -> None:
    """Rewrite ``docs/science.md`` of this checkout."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    page = _TOP / "docs" / "science.md"
    tasks = [open_task(path.parent) for path in sorted(_TOP.glob(f"tasks/*/{RECORDS}"))]
    page.write_text(with_table(page.read_text(encoding="utf-8"), tasks), encoding="utf-8")


if __name__ == "__main__":
    main()
