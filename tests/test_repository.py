"""What must hold for every file of a kind, in every task."""

from __future__ import annotations

import ast
import datetime as dt
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from re_bench.cli.check_command import repository_problems
from re_bench.task.check import check_task, unpinned
from re_bench.task.discovery import open_task

TOP = Path(__file__).resolve().parents[1]
TASKS = sorted(path.parent for path in TOP.glob("tasks/*/task.toml"))
PROJECTS = sorted(path for pattern in ("*", "agents/*", "tasks/*") for path in TOP.glob(f"{pattern}/pyproject.toml"))
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


def unformatted_scores(source: Path) -> list[str]:
    """Return the places that show a reward or raw score with all its digits, or with a minus before a zero."""
    tree = ast.parse(source.read_text())
    raised = {id(node) for error in ast.walk(tree) if isinstance(error, ast.Raise) for node in ast.walk(error)}
    shown = [node for node in ast.walk(tree) if isinstance(node, ast.FormattedValue) and id(node) not in raised]
    scores = [node for node in shown if re.search(r"[.'\"](reward|raw)(['\"]\])?$", ast.unparse(node.value))]
    return [
        f"{source}:{node.lineno}"
        for node in scores
        if node.format_spec is None or not ast.unparse(node.format_spec).lstrip("f'\"").startswith("z")
    ]


def test_no_person_reads_minus_zero_or_sixteen_digits_of_a_score() -> None:
    sources = [path for root in ("*/src", "*/*/src") for path in TOP.glob(f"{root}/**/*.py")]
    telling = [path for path in sources if re.search("reward|raw", path.read_text())]
    assert len(telling) > 100
    assert [place for path in telling for place in unformatted_scores(path)] == []


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
    for version in ("3.11", "3.12", "3.13"):
        assert f"score-{version} -> Check every task once in Python {version}" in listed.stdout
        assert f"tests-{version} -> Test the core in Python {version}" in listed.stdout


@cache
def noxfile() -> dict[str, Any]:
    """Return what noxfile.py defines; nox warns of sessions that are made twice."""
    return runpy.run_path(str(TOP / "noxfile.py"))


def session_with(*posargs: str, tmp: Path) -> SimpleNamespace:
    """Return as much of a session as the functions of noxfile.py need before they run anything."""

    def skip(reason: str) -> None:
        raise RuntimeError(reason)

    return SimpleNamespace(name="score-3.13", posargs=list(posargs), create_tmp=lambda: str(tmp), skip=skip)


@pytest.mark.parametrize("options", [("--torch", "2.11.0"), ("--torch=2.11.0",)])
def test_another_torch_sets_its_triton_and_the_pins_all_else(options: tuple[str, ...], tmp_path: Path) -> None:
    session = session_with("--repeats", "3", *options, "--json", tmp=tmp_path)
    torch, rest = noxfile()["torch_and_rest"](session)
    assert (torch, rest) == ("torch==2.11.0", ["--repeats", "3", "--json"])
    kept = set(noxfile()["pins_beside"](session, torch).read_text().splitlines())
    left = set((TOP / "constraints.txt").read_text().splitlines()) - kept
    assert sorted(line.partition("==")[0] for line in left) == ["setuptools", "torch", "triton"]


def test_without_another_torch_the_pins_are_as_they_are(tmp_path: Path) -> None:
    session = session_with("--repeats", "3", tmp=tmp_path)
    torch, rest = noxfile()["torch_and_rest"](session)
    assert (torch, rest) == (noxfile()["pinned"]("torch"), ["--repeats", "3"])
    assert noxfile()["pins_beside"](session, torch) == TOP / "constraints.txt"


def test_a_python_that_is_not_here_is_skipped_with_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"NOT RUN: no working python9\.9.*pyenv install 9\.9"):
        noxfile()["renew_environment_of"](session_with(tmp=tmp_path), "9.9", "torch==2.13.0")
