"""What must hold for every file of a kind, in every task."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

import pytest

from re_bench.cli.task_commands import repository_problems
from re_bench.task.check import check_task, unpinned
from re_bench.task.discovery import open_task

TOP = Path(__file__).resolve().parents[1]
TASKS = sorted(path.parent for path in TOP.glob("tasks/*/task.toml"))
PROJECTS = sorted(
    path for pattern in ("*", "agents/*", "integrations/*", "tasks/*") for path in TOP.glob(f"{pattern}/pyproject.toml")
)
BUILT = [task for task in TASKS if (task / "score.py").exists()]
NEWEST_ANCHORS = max(
    dt.date.fromisoformat(date)
    for task in TASKS
    for date in re.findall(r"^date = (\S+)", (task / "anchors.toml").read_text(), re.MULTILINE)
)
"""Their age counts from here, so that a suite that passes today passes next year; the command counts from today."""


def is_original(task: Path) -> bool:
    """Tell whether this is a task of the original benchmark, whose ids begin so."""
    return open_task(task).manifest.id.startswith("ai_rd_")


def test_there_are_the_five_tasks_of_the_benchmark() -> None:
    assert len([task for task in TASKS if is_original(task)]) == 5


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_manifest_loads_and_the_originals_have_published_anchors(task: Path) -> None:
    assert open_task(task).manifest.published or not is_original(task)


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_nothing_is_wrong_with_the_files_of_a_task(task: Path) -> None:
    assert [*map(str, check_task(task, NEWEST_ANCHORS).problems)] == []


def test_nothing_is_wrong_with_what_the_repository_keeps_about_tasks() -> None:
    assert [*map(str, repository_problems(TOP))] == []


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_dependency_is_pinned(project: Path) -> None:
    assert [*map(str, unpinned(project, TOP))] == []


def test_nox_has_sessions_for_every_task_with_a_scorer() -> None:
    listed = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=TOP, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.fail(listed.stderr)
    for task in TASKS:
        assert (f"score-{task.name} -> Score baseline" in listed.stdout) == (task in BUILT)
        assert (f"calibrate-{task.name} -> Measure" in listed.stdout) == (task in BUILT)


def test_one_requirements_file_installs_every_distribution() -> None:
    listed = set(re.findall(r"^-e \./([^[\n]+)", (TOP / "requirements.txt").read_text(), re.MULTILINE))
    assert listed == {str(project.parent.relative_to(TOP)) for project in PROJECTS}
