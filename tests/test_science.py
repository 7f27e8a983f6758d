"""Test the page of results, and invalid records."""

from __future__ import annotations

import importlib
import math
from pathlib import Path

import pytest

from re_bench.cli.science import with_tables
from re_bench.task.discovery import TaskFolder, find_tasks
from re_bench.task.manifest import RECORDS, Records
from re_bench.task.manifest_file import ManifestError, read_table

TOP = Path(__file__).resolve().parents[1]
EMPTY, OVERVIEW, METR = (f"<!-- table: {name} -->\n<!-- end of table -->\n" for name in ("results", "overview", "metr"))
TASKS = [task for task in find_tasks().values() if (task.directory / RECORDS).exists()]


def copy_of(task: TaskFolder, directory: Path, records: str) -> TaskFolder:
    (directory / RECORDS).write_text(records)
    return TaskFolder(directory, task.manifest)


def test_the_page_is_current() -> None:
    assert len([task for task in TASKS if task.manifest.id.startswith("ai_rd_")]) == 5
    page = (TOP / "docs" / "science.md").read_text()
    assert page == with_tables(page, sorted(TASKS, key=lambda task: task.name)), "run: python -m re_bench.cli.science"
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
    row = next(line for line in with_tables(EMPTY, [copy_of(task, tmp_path, text)]).splitlines() if "a\\|b" in line)
    assert "| 0.50 | 3 |  |" in row


def cells(page: str, first: str) -> dict[str, str]:
    """Return the cells of the row that begins with ``first``, by the names of the columns."""
    header, _rule, *rows = (line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("|"))
    (row,) = (row for row in rows if " ".join(row).startswith(first))
    return dict(zip(header, row, strict=True))


def test_the_overview_has_the_best_cheap_method_and_the_noise(tmp_path: Path) -> None:
    task = next(task for task in TASKS if task.name == "rust_codecontests")
    rows = [
        'kind = "simple", cheap = true, method = "good", raw = 0.3, seconds = "60 to 90"',
        'kind = "simple", cheap = true, method = "bad", raw = 0.1',
        'kind = "simple", method = "long", raw = 0.4',
        'kind = "reference", method = "ours"',
        'kind = "ceiling", method = "all", raw = 1.0',
    ]
    records = ", ".join(f'{{profile = "cpu", {row}}}' for row in rows)
    page = with_tables(OVERVIEW, [copy_of(task, tmp_path, f'noise = {{cpu = "0.01"}}\nrecords = [{records}]\n')])
    row = cells(page, f"{tmp_path.name} cpu ")
    anchors = task.manifest.profiles["cpu"].anchors
    assert anchors is not None
    span = anchors.reference - anchors.starting
    expected = ["0.01", "good", "1 to 1.5", "ours", ""]
    names = ["noise", "best cheap method", "its minutes", "reference", "METR-equivalent of the reference"]
    assert [row[name] for name in names] == expected
    assert float(row["ceiling"]) == pytest.approx((1.0 - anchors.starting) / span, abs=0.006)
    assert float(row["its reward"]) == pytest.approx((0.3 - anchors.starting) / span, abs=0.006)


def test_metr_s_figures_have_rewards_on_both_scales() -> None:
    task = next(task for task in TASKS if task.name == "triton_cumsum")
    row = cells(with_tables(METR, [task]), "triton_cumsum")
    figures = ["our profile", "best human", "reward of the best human", "our reward of METR's reference"]
    assert [row[name] for name in figures] == ["gpu", "-0.405", "1.80", "0.32"]
    assert cells(with_tables(OVERVIEW, [task]), "triton_cumsum gpu")["METR-equivalent of the reference"] == "2.71"
    assert cells(with_tables(OVERVIEW, [task]), "triton_cumsum cpu")["METR-equivalent of the reference"] == ""


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
        with_tables(EMPTY, [copy_of(task, tmp_path, text)])
