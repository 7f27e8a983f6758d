"""A sixth task, made from the page for task authors alone, inside the repository and outside of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
FILES = re.compile(r"^\*\*`(?P<path>primes/[^`]+)`\*\*\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LISTS = "tables or lists or listed or manifests or tasks_and_anchors"
"""Tests that look at all tasks at once."""
GENERIC = ("tests/test_repository.py", "tests/test_scorer_contract.py", "tests/test_fuzz_submissions.py")


def write_task(directory: Path) -> Path:
    """Write the page's files and return the task's directory."""
    for match in FILES.finditer((TOP / "docs" / "task-authors.md").read_text()):
        path = directory / match["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(match["text"])
    return directory / "primes"


@pytest.fixture(scope="module")
def primes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the task's directory outside of the repository."""
    top = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(TOP / "tasks" / "hatch_build.py", top)
    return write_task(top)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository with the task in it, and nothing else changed."""
    top = tmp_path_factory.mktemp("inside") / "checkout"
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=TOP, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listing.split("\0")):
        if (TOP / name).is_file():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, top / name)
    write_task(top / "tasks")
    return top


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False
    )


def re_bench(*arguments: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "re_bench.cli", *arguments, PYTHONPATH=str(path or ""))


def test_the_page_holds_every_file_it_lists(primes: Path) -> None:
    names = {path.relative_to(primes).parts[0] for path in primes.rglob("*") if path.is_file()}
    assert names >= {"task.toml", "score.py", "primes", "starter", "baseline", "reference", "cheats", "pyproject.toml"}


def test_it_validates_by_its_directory(primes: Path) -> None:
    done = re_bench("validate", primes, "--repeats", "1", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    (report,) = json.loads(done.stdout)["reports"]
    rewards = {row["variant"]: row["scores"][0]["reward"] for row in report["rows"]}
    assert (rewards["baseline"], rewards["reference"], rewards["cheats/fake_score"]) == (0.0, 1.0, None)


def test_its_scorer_keeps_the_contract(primes: Path, tmp_path: Path) -> None:
    assert re_bench("workspace", primes, tmp_path / "attempt").returncode == 0
    done = run(sys.executable, primes / "score.py", "--solution", tmp_path / "attempt", "--json")
    assert done.returncode == 0, done.stderr
    score = json.loads(done.stdout)
    assert list(score) == ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]
    assert (score["task"], score["profile"], score["status"], score["raw"]) == ("primes", "cpu", "valid", 0.5)


def test_a_broken_reference_fails_the_validation_and_says_where(primes: Path, tmp_path: Path) -> None:
    broken = tmp_path / "primes"
    shutil.copytree(primes, broken)
    reference = broken / "reference" / "solution.py"
    reference.write_text(reference.read_text().replace("number > 1", "number > 10_000"))
    done = re_bench("validate", broken, "--repeats", "1")
    assert done.returncode == 1
    assert "FAILED: reward 1 +- 0.05, got" in done.stdout


def test_installed_as_a_package_it_stands_beside_the_others(primes: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(primes)], check=True, capture_output=True)
    listed = re_bench("tasks", "--json", path=site)
    assert listed.returncode == 0, listed.stderr
    assert set(json.loads(listed.stdout)) > {"primes"}
    scored = re_bench("validate", "primes", "--repeats", "1", path=site)
    assert scored.returncode == 0, scored.stdout + scored.stderr
    by_id = re_bench("workspace", "example_primes", tmp_path / "attempt", path=site)
    assert by_id.returncode == 0, by_id.stderr


def test_inside_the_repository_no_other_file_has_to_change(checkout: Path) -> None:
    passed = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "primes", *GENERIC, cwd=checkout)
    assert passed.returncode == 0, passed.stdout
    counts = re.search(r"(\d+) passed", passed.stdout)
    assert counts is not None
    assert int(counts[1]) >= 15, passed.stdout
    assert not re.search(r"\d+ (skipped|failed|error)", passed.stdout)
    others = ("tests/test_command.py", "environment/tests/test_files.py", "environment/tests/test_protocol.py")
    passed = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", LISTS, *others, cwd=checkout)
    assert passed.returncode == 0, passed.stdout
    sessions = run(sys.executable, "-m", "nox", "-l", cwd=checkout).stdout
    assert "score-primes -> Score baseline" in sessions
    assert "calibrate-primes -> Measure" in sessions
    listed = run(sys.executable, "-m", "re_bench.cli", "tasks", "--json", cwd=checkout)
    assert json.loads(listed.stdout)["primes"]["directory"] == str(checkout / "tasks" / "primes")


def test_inside_the_repository_it_passes_the_checks_of_style_and_types(checkout: Path) -> None:
    task = checkout / "tasks" / "primes"
    for command in (("ruff", "check"), ("ruff", "format", "--check"), ("mypy", "--allow-subclassing-any")):
        done = run(sys.executable, "-m", *command, task, cwd=checkout, MYPYPATH=str(task))
        assert done.returncode == 0, done.stdout + done.stderr
