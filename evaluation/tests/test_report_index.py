"""The index of attempt logs: it says what the logs say, whatever happens to it or to them."""

from __future__ import annotations

import os
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from evaluation_factory import TASKS, Shape, make_log

from re_bench.runs.attempts import Attempt, AttemptLog, _encode, _fields
from re_bench_evaluation.report.attempt_index import AttemptIndex, LogFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.runs.attempts import LogContents
    from re_bench_evaluation.report.attempt_index import IndexedLog

SHAPE = Shape(attempts=5, submissions=False)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for number, path in enumerate(paths):
        make_log(path, TASKS[0], SHAPE, random.Random(number))
    return paths


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the logs that were read from now on."""
    seen: list[Path] = []
    read = AttemptLog.read

    def noted(log: AttemptLog) -> LogContents:
        seen.append(log.path)
        return read(log)

    monkeypatch.setattr(AttemptLog, "read", noted)
    return seen


def read(index: AttemptIndex, logs: Sequence[Path]) -> dict[Path, IndexedLog]:
    return index.read([LogFiles(path) for path in logs])


def append(log: Path) -> None:
    values = {"time": "", "task": "alpha", "profile": "cpu", "status": "valid", "raw": 1.0, "reward": 1.0}
    AttemptLog(log).append(Attempt(message="new", **values))  # type: ignore[arg-type]


def test_it_says_what_the_logs_say_and_reads_each_once(tmp_path: Path, logs: list[Path], reads: list[Path]) -> None:
    for _time in range(2):
        indexed = read(AttemptIndex(tmp_path), logs)
    assert reads == logs
    for path in logs:
        assert indexed[path].attempts == AttemptLog(path).read().attempts
        assert (indexed[path].torn, indexed[path].problem) == (0, "")


def test_a_changed_log_is_read_again_and_no_other(tmp_path: Path, logs: list[Path], reads: list[Path]) -> None:
    read(AttemptIndex(tmp_path), logs)
    append(logs[1])
    reads.clear()
    assert len(read(AttemptIndex(tmp_path), logs)[logs[1]].attempts) == 6
    assert reads == [logs[1]]


def test_a_log_in_the_place_of_another_is_noticed_by_its_inode(
    tmp_path: Path, logs: list[Path], reads: list[Path]
) -> None:
    before = read(AttemptIndex(tmp_path), logs)[logs[0]]
    status, content = logs[0].stat(), logs[0].read_bytes()
    replacement = tmp_path / "new"
    replacement.write_bytes(content[:-2] + b"\n\n")  # of the same size, its last line torn
    replacement.replace(logs[0])
    os.utime(logs[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    reads.clear()
    after = read(AttemptIndex(tmp_path), logs)[logs[0]]
    assert reads == [logs[0]]
    assert (len(before.attempts), len(after.attempts), after.torn) == (5, 4, 1)


def test_what_the_times_depend_on_is_noticed(tmp_path: Path, reads: list[Path]) -> None:
    session = tmp_path / "session"
    session.mkdir()
    log = session / "attempts.jsonl"
    make_log(log, TASKS[0], SHAPE, random.Random(0))
    reads.clear()
    files = LogFiles(log, session, session / "waits.jsonl")
    index = AttemptIndex(tmp_path)
    assert index.read([files])[log].attempts[0].wall_s is None
    (session / "session.json").write_text('{"opened": "2026-11-01T08:00:00+00:00"}')
    first = index.read([files])[log].attempts[0]
    assert first.wall_s is not None
    assert first.working_s == first.wall_s
    (session / "waits.jsonl").write_text('{"began": 1793520060.0, "ended": 1793520070.0, "reason": ""}\n')
    assert index.read([files])[log].attempts[0].working_s == pytest.approx(first.wall_s - 10)
    assert reads == [log] * 3


def test_a_log_that_is_gone_or_no_file_is_said(tmp_path: Path, logs: list[Path]) -> None:
    index = AttemptIndex(tmp_path)
    read(index, logs)
    logs[0].unlink()
    logs[1].unlink()
    logs[1].symlink_to(logs[2])
    indexed = read(index, logs)
    assert indexed[logs[0]].attempts == ()
    assert indexed[logs[1]].attempts == ()
    assert "symbolic link" in indexed[logs[1]].problem
    assert len(read(index, logs[2:])[logs[2]].attempts) == 5


@pytest.mark.parametrize("damage", ["garbage", "empty", "another version", "no table"])
def test_a_damaged_index_is_made_anew(tmp_path: Path, logs: list[Path], reads: list[Path], damage: str) -> None:
    expected = read(AttemptIndex(tmp_path), logs)
    path = AttemptIndex(tmp_path).path
    assert path is not None
    if damage == "garbage":
        path.write_bytes(b"no database" * 1000)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 77" if damage == "another version" else "DROP TABLE attempts")
        database.close()
    assert read(AttemptIndex(tmp_path), logs) == expected
    reads.clear()
    assert read(AttemptIndex(tmp_path), logs) == expected
    assert not reads


def test_it_is_rebuilt_when_asked(tmp_path: Path, logs: list[Path], reads: list[Path]) -> None:
    read(AttemptIndex(tmp_path), logs)
    read(AttemptIndex(tmp_path, rebuild=True), logs)
    assert reads == logs * 2


def test_without_a_cache_the_logs_are_read_all_the_same(
    tmp_path: Path, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "file" / "cache"))
    assert len(read(AttemptIndex(tmp_path), logs)[logs[0]].attempts) == 5
    assert len(read(AttemptIndex(None), logs)[logs[0]].attempts) == 5


def test_a_name_that_is_no_text_and_a_number_that_is_too_large(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    make_log(odd, TASKS[0], SHAPE, random.Random(0))
    assert len(read(AttemptIndex(tmp_path), [odd])[odd].attempts) == 5
    large = tmp_path / "large.jsonl"
    values = {"time": "", "task": "t", "profile": "cpu", "status": "error", "raw": None, "reward": None, "message": ""}
    line = AttemptLog(large).append(Attempt(**values))  # type: ignore[arg-type]
    assert line.n == 1
    fields = _fields(line) | {"n": 1 << 80}
    large.write_bytes(_encode(fields) + b"\n")
    assert "numbers above" in read(AttemptIndex(tmp_path), [large])[large].problem


def test_several_readers_at_once_do_not_get_in_each_others_way(tmp_path: Path, logs: list[Path]) -> None:
    expected = read(AttemptIndex(None), logs)

    def read_some(number: int) -> bool:
        some = logs[number % 3 :]
        return all(read(AttemptIndex(tmp_path), some)[path] == expected[path] for path in some)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read_some, range(40)))
