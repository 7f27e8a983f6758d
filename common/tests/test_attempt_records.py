"""What scorers record: a directory for each attempt, within a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from re_bench.errors import UsageError
from re_bench.runs.attempt_records import AttemptRecords

if TYPE_CHECKING:
    from pathlib import Path


def recorded(records: AttemptRecords, attempt: int, kib: int) -> None:
    with records.incoming() as incoming:
        if kib:
            (incoming.directory / "calls.jsonl").write_bytes(b"x" * (kib << 10))
        incoming.keep(attempt)


def test_the_oldest_records_make_room(tmp_path: Path) -> None:
    records = AttemptRecords(tmp_path / "log", max_bytes=100 << 10)
    recorded(records, 1, 0)
    assert not records.directory.exists()
    for attempt in (1, 2, 9, 10):
        recorded(records, attempt, 40)
    assert sorted(path.name for path in records.directory.iterdir()) == ["10", "9"]


def test_what_is_not_kept_is_removed(tmp_path: Path) -> None:
    records = AttemptRecords(tmp_path / "log")
    with records.incoming() as incoming:
        (incoming.directory / "half").touch()
    assert not records.directory.exists()
    records.directory.touch()
    with pytest.raises(UsageError, match=r"log\.records: records cannot be kept there"), records.incoming():
        pass
