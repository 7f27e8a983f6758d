"""What must hold for every file of a kind, in every task."""

from __future__ import annotations

import ast
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
PROJECTS = sorted(path for pattern in ("*", "agents/*", "tasks/*") for path in TOP.glob(f"{pattern}/pyproject.toml"))
OURS = {tomllib.loads(path.read_text())["project"]["name"] for path in PROJECTS}
BUILT = [task for task in TASKS if (task / "score.py").exists()]


def is_original(task: Path) -> bool:
    """Tell whether this is a task of the original benchmark, whose ids begin so."""
    return open_task(task).manifest.id.startswith("ai_rd_")


def test_there_are_the_five_tasks_of_the_benchmark() -> None:
    assert len([task for task in TASKS if is_original(task)]) == 5


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_manifest_loads_and_the_originals_have_published_anchors(task: Path) -> None:
    assert open_task(task).manifest.published or not is_original(task)


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_readme_instructions_and_reference_carry_the_canary(task: Path) -> None:
    files = [task / "README.md", task / "instructions.md", *(p for p in (task / "reference").rglob("*.py"))]
    assert [str(path) for path in files if CANARY not in path.read_text()] == []


@pytest.mark.parametrize("directory", BUILT, ids=lambda task: task.name)
def test_a_manifest_says_what_draws_the_instances_of_a_task_that_draws_them(directory: Path) -> None:
    task = open_task(directory)
    sources = "".join(path.read_text() for path in [task.scorer, *task.package.rglob("*.py")])
    calls = {"chosen": ("chosen_instance(",), "secret": ("secret_seed(", "interim_windows(")}
    drawn_by = {source for source, names in calls.items() if any(name in sources for name in names)}
    assert {profile.instance for profile in task.manifest.profiles.values()} - {None} == drawn_by


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_every_cheat_has_a_folder_and_a_table(task: Path) -> None:
    opened = open_task(task)
    assert set(opened.cheats) == set(opened.manifest.cheats)
    assert len(opened.cheats) >= 4


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_a_scorer_fits_on_a_screen_and_has_the_shape_of_all(task: Path) -> None:
    text = (task / "score.py").read_text()
    assert len(text.splitlines()) <= 80
    tree = ast.parse(text)
    assert re.search(r"\braw = ", ast.get_docstring(tree) or "")
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert isinstance(function, ast.FunctionDef)
    assert ast.unparse(function).startswith("def measure(job: Job) -> Measured:")
    assert text.endswith('\n\nif __name__ == "__main__":\n    main(measure, Path(__file__).parent)\n')


@pytest.mark.parametrize("task", BUILT, ids=lambda task: task.name)
def test_a_task_has_a_package_with_a_harness_or_needs_none(task: Path) -> None:
    package = open_task(task).package
    assert package == task / task.name
    assert {"grading.py"} <= {path.name for path in package.iterdir()}
    if (package / "harness").exists():
        assert (package / "harness" / "__init__.py").is_file()


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


def test_the_readme_names_every_original_task() -> None:
    readme = (TOP / "README.md").read_text()
    assert all(f"`{task.name}`" in readme for task in TASKS if is_original(task))


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.parent.name)
def test_every_dependency_is_pinned(project: Path) -> None:
    pins = set(re.findall(r"^([A-Za-z0-9_.-]+)==", (TOP / "constraints.txt").read_text(), re.MULTILINE))
    table = tomllib.loads(project.read_text())["project"]
    lines = [
        *table["dependencies"],
        *(line for extra in table.get("optional-dependencies", {}).values() for line in extra),
    ]
    names = {re.split(r"[<>=!~\[; ]", line)[0] for line in lines}
    assert {name for name in names if name not in OURS} <= pins


def test_nox_has_sessions_for_every_task_with_a_scorer() -> None:
    listed = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=TOP, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.fail(listed.stderr)
    for task in TASKS:
        assert (f"score-{task.name} -> Score baseline" in listed.stdout) == (task in BUILT)
        assert (f"calibrate-{task.name} -> Measure" in listed.stdout) == (task in BUILT)
