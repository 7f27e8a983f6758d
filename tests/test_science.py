"""Test the page of results, and invalid records."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

from re_bench.cli.science import with_table
from re_bench.task.discovery import TaskFolder, find_tasks
from re_bench.task.manifest import RECORDS, Records
from re_bench.task.manifest_file import ManifestError, read_table

TOP = Path(__file__).resolve().parents[1]
EMPTY = "<!-- table: results -->\n<!-- end of table -->\n"
TASKS = [task for task in find_tasks().values() if (task.directory / RECORDS).exists()]


def copy_of(task: TaskFolder, directory: Path, records: str) -> TaskFolder:
    (directory / RECORDS).write_text(records)
    return TaskFolder(directory, task.manifest)


def test_the_page_is_current() -> None:
    assert len([task for task in TASKS if task.manifest.id.startswith("ai_rd_")]) == 5
    page = (TOP / "docs" / "science.md").read_text()
    assert page == with_table(page, sorted(TASKS, key=lambda task: task.name)), "run: python -m re_bench.cli.science"
    for task in TASKS:
        for profile, entry in task.manifest.profiles.items():
            for kind in ("baseline", "reference") if entry.anchors or entry.devices else ():
                assert f"| {task.name} | {profile} | {kind} |" in page


def test_floors_are_those_of_the_tasks() -> None:
    checked = 0
    for task in TASKS:
        for profile, floor in read_table(task.directory / RECORDS, Records).floors.items():
            task.add_to_path()
            assert importlib.import_module(task.module("profiles")).PROFILES[profile].floor == floor
            checked += 1
    assert checked >= 4


def test_a_row_has_the_reward_of_its_value(tmp_path: Path) -> None:
    task = next(task for task in TASKS if (anchors := task.manifest.profiles["cpu"].anchors) and anchors.starting > 1)
    anchors = task.manifest.profiles["cpu"].anchors
    assert anchors is not None
    value = 0.5 + math.exp((anchors.starting + anchors.reference) / 2)
    record = f'{{profile = "cpu", kind = "simple", method = "a|b", value = {value!r}, seconds = "3"}}'
    text = f'value = "loss"\nfloors = {{cpu = 0.5}}\nrecords = [{record}]\n'
    row = next(line for line in with_table(EMPTY, [copy_of(task, tmp_path, text)]).splitlines() if "a\\|b" in line)
    assert "| 0.50 | 3 |  |" in row


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('profile = "cpu", kind = "simple", method = "m"', "either value or raw"),
        ('profile = "cpu", kind = "simple", method = "m", value = 1.5, raw = 1.0', "either value or raw"),
        ('profile = "cpu", kind = "simple", method = "m", value = 0.5', "above the floor"),
        ('profile = "cpu", kind = "reference", method = "m", raw = 1.0', "neither value nor raw"),
        ('profile = "cpu", kind = "good", method = "m", raw = 1.0', "'baseline', 'simple'"),
        ('profile = "cpu", kind = "best", method = "m", raw = 1.0, second = 3', "second"),
        ('profile = "paper", kind = "best", method = "m", raw = 1.0', "has no profile 'paper'"),
    ],
)
def test_invalid_records_are_rejected(record: str, problem: str, tmp_path: Path) -> None:
    task = next(task for task in TASKS if "paper" not in task.manifest.profiles)
    text = f'value = "loss"\nfloors = {{cpu = 0.5}}\nrecords = [{{{record}}}]\n'
    with pytest.raises(ManifestError, match=problem):
        with_table(EMPTY, [copy_of(task, tmp_path, text)])
