"""Test diffs of submissions and steps of agents."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from re_bench_evaluation.report.data import AttemptInfo
from re_bench_evaluation.report.details import compare, read_steps, steps_before
from re_bench_evaluation.report.sources import RunFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    return before, after


def test_diff_of_files(pair: tuple[Path, Path]) -> None:
    before, after = pair
    (before / "sub").mkdir()
    (after / "sub").mkdir()
    for directory, files in ((before, {"same": "1", "gone": "2", "sub/new": "3\n4"}),
                             (after, {"same": "1", "sub/new": "3\n5", "added": "6"})):  # fmt: skip
        for name, text in files.items():
            (directory / name).write_text(text)
    diff = compare(before, after, 3, 1000)
    assert [(file.name, file.change) for file in diff.files] == [
        ("added", "added"), ("gone", "removed"), ("sub/new", "changed"),
    ]  # fmt: skip
    assert diff.files[2].text == "@@ -1,2 +1,2 @@\n 3\n-4\n+5"
    assert (diff.against, diff.left_out) == (3, "")
    assert [file.change for file in compare(None, after, None, 1000).files] == ["added"] * 3


def test_links_are_not_followed(pair: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = pair
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("the secret")
    (after / "link").symlink_to(tmp_path / "secret" / "key")
    (after / "directory").symlink_to(tmp_path / "secret")
    os.mkfifo(after / "pipe")
    assert compare(before, after, 1, 1000).files == ()


def test_long_and_binary_files_have_no_diff(pair: tuple[Path, Path]) -> None:
    before, after = pair
    (after / "long").write_text("x" * 200_000)
    (after / "binary").write_bytes(b"\0\1")
    (after / "latin").write_bytes(b"\xff")
    (after / os.fsdecode(b"name-\xff")).write_text("a\n")
    by_name = {file.name: file for file in compare(before, after, 1, 1000).files}
    assert by_name["long"].reason == "too long to show: 200000 bytes"
    assert by_name["binary"].reason == "binary, 2 bytes"
    assert by_name["latin"].reason == "binary, 1 bytes"
    assert "\ufffd" in next(name for name in by_name if name.startswith("name-"))


def test_diffs_are_limited(pair: tuple[Path, Path]) -> None:
    before, after = pair
    for number in range(500):
        (after / f"many-{number:03}").write_text("a")
    diff = compare(before, after, 1, 100)
    assert len(diff.files) == 40
    assert diff.left_out == "360 more files and files beyond the first 400"
    assert sum(len(file.text or "") for file in diff.files) <= 100 + 40 * len("\n[...]")
    assert any(file.reason == "left out: report size limit reached" for file in diff.files)


def test_repeated_lines_are_fast(pair: tuple[Path, Path]) -> None:
    before, after = pair
    (before / "file").write_text("a\n" * 50_000)
    (after / "file").write_text("a\n" * 50_001)
    began = time.process_time()
    (file,) = compare(before, after, 1, 1000).files
    assert file.reason == "too many equal lines to compare"
    assert time.process_time() - began < 2


def files_of(directory: Path, trace: list[object]) -> RunFiles:
    path = directory / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in trace) + '{"kind": "action", "to')
    return RunFiles(directory, directory / "attempts.jsonl", trace=path)


def test_malformed_steps(tmp_path: Path) -> None:
    trace: list[object] = [
        {"kind": "observation", "time": 1, "text": "without an action"},
        {"kind": "action", "time": 2, "action": "Execute Script", "input": {"script_name": "a.py"}},
        {"kind": "observation", "time": 3, "text": "y" * 5000},
        {"kind": "action", "time": "soon", "action": ["odd"], "input": "text"},
        {"kind": "observation", "time": 10**400, "text": {"not": "text"}},
        {"kind": "action", "time": 5, "action": "Score", "input": {}},
        {"kind": "observation", "time": 6, "text": "a score"},
        ["no event, of kind action"],
    ]
    steps = [timed.step for timed in read_steps(files_of(tmp_path, trace))]
    assert [step.title for step in steps] == ["Execute Script", "unknown"]
    assert len(steps[0].output) < 400
    assert steps[0].text == "a.py"


def test_steps_before_attempts(tmp_path: Path) -> None:
    trace: list[object] = []
    for second in range(10):
        trace.append({"kind": "action", "time": second, "action": f"A{second}", "input": {}})
        trace.append({"kind": "observation", "time": second, "text": "x" * 90})
    steps = read_steps(files_of(tmp_path, trace))
    times = ["1970-01-01T00:00:03+00:00", "1970-01-01T00:00:08+00:00", "not a time"]
    attempts = [
        AttemptInfo(n, time, None, None, 0.0, "error", None, None, None, None, "", "", kept=False)
        for n, time in enumerate(times, 1)
    ]
    before = steps_before(attempts, steps, 0.0, 300)
    assert [[step.title for step in own] for own, _left_out in before] == [
        ["A1", "A2", "A3"],
        ["A6", "A7", "A8"],
        ["A9"],
    ]
    assert [left_out for _own, left_out in before] == [1, 2, 0]
    assert before[0][0][0].time_s == 1.0
    assert steps_before(attempts, steps, None, 300)[0][0][0].time_s is None
    clocked = [replace(attempts[0], wall_s=1.5, seconds=0.5), replace(attempts[1], wall_s=3.0, seconds=0.5)]
    on_clock = [[step.time_s for step in own] for own, _left_out in steps_before(clocked, steps, 0.0, 300)]
    assert on_clock == [[0.0, 1.0, 2.0], [1.5, 2.5, 3.5]], "the clock excludes server start and downtime"
