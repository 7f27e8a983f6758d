"""Test the files of every task and of the repository."""

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
"""Date for the age of anchors, so that the tests do not start failing with time."""


def is_original(task: Path) -> bool:
    """Return whether this is a task of the original benchmark, judging by its id."""
    return open_task(task).manifest.id.startswith("ai_rd_")


def test_there_are_the_five_tasks_of_the_benchmark() -> None:
    assert len([task for task in TASKS if is_original(task)]) == 5


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_manifest_loads_and_the_originals_have_published_anchors(task: Path) -> None:
    assert open_task(task).manifest.published or not is_original(task)


@pytest.mark.integration
@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_files_of_a_task_have_no_problems(task: Path) -> None:
    assert [*map(str, check_task(task, NEWEST_ANCHORS).problems)] == []


def test_the_repositorys_files_have_no_problems() -> None:
    assert [*map(str, repository_problems(TOP))] == []


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_dependency_is_pinned(project: Path) -> None:
    assert [*map(str, unpinned(project, TOP))] == []


@pytest.mark.integration
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
