"""What must hold for every file of a kind, in every task."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from re_bench.task.discovery import open_task

TOP = Path(__file__).resolve().parents[1]
CANARY = "re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training"
TASKS = sorted(path.parent for path in TOP.glob("tasks/*/task.toml"))
BUILT = [task for task in TASKS if (task / "score.py").exists()]


def test_there_are_five_tasks() -> None:
    assert [task.name for task in TASKS] == [
        "fix_embedding", "restricted_mlm", "rust_codecontests", "small_scaling_law", "triton_cumsum",
    ]  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_manifest_loads(task: Path) -> None:
    assert open_task(task).manifest.published


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_readme_instructions_and_reference_carry_the_canary(task: Path) -> None:
    files = [task / "README.md", task / "instructions.md", *(p for p in (task / "reference").rglob("*.py"))]
    assert [str(path) for path in files if CANARY not in path.read_text()] == []


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_every_cheat_has_a_folder_and_a_table(task: Path) -> None:
    opened = open_task(task)
    assert set(opened.cheats) == set(opened.manifest.cheats)
    assert len(opened.cheats) >= 4


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_a_scorer_fits_on_two_screens(task: Path) -> None:
    assert len((task / "score.py").read_text().splitlines()) <= 150


def test_the_readme_names_every_task() -> None:
    readme = (TOP / "README.md").read_text()
    assert all(f"`{task.name}`" in readme for task in TASKS)


def test_every_dependency_is_pinned() -> None:
    pins = set(re.findall(r"^([A-Za-z0-9_.-]+)==", (TOP / "constraints.txt").read_text(), re.MULTILINE))
    project = tomllib.loads((TOP / "common" / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=!~\[; ]", line)[0] for line in project["dependencies"]}
    assert names <= pins


def test_nox_has_sessions_for_every_task_with_a_scorer() -> None:
    listed = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=TOP, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.fail(listed.stderr)
    for task in TASKS:
        assert (f"score-{task.name} -> Score baseline" in listed.stdout) == (task in BUILT)
        assert (f"calibrate-{task.name} -> Measure" in listed.stdout) == (task in BUILT)
