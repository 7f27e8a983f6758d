"""A sixth task, made outside the repository from the page for task authors alone, is found, scored and validated."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "task-authors.md"
FILES = re.compile(r"^\*\*`(?P<path>primes/[^`]+)`\*\*\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def primes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the task's directory, written from the page."""
    top = tmp_path_factory.mktemp("elsewhere")
    for match in FILES.finditer(PAGE.read_text()):
        path = top / match["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(match["text"])
    return top / "primes"


def re_bench(*arguments: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-m", "re_bench.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_page_holds_every_file_it_lists(primes: Path) -> None:
    names = {path.relative_to(primes).parts[0] for path in primes.rglob("*") if path.is_file()}
    assert names >= {"task.toml", "score.py", "harness.py", "starter", "baseline", "reference", "cheats"}


def test_it_validates_by_its_directory(primes: Path) -> None:
    done = re_bench("validate", primes, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    (report,) = json.loads(done.stdout)["reports"]
    rewards = {row["variant"]: row["scores"][0]["reward"] for row in report["rows"]}
    assert (rewards["baseline"], rewards["reference"], rewards["cheats/fake_score"]) == (0.0, 1.0, None)


def test_its_scorer_keeps_the_contract(primes: Path, tmp_path: Path) -> None:
    assert re_bench("workspace", primes, tmp_path / "attempt").returncode == 0
    command = [sys.executable, str(primes / "score.py"), "--solution", str(tmp_path / "attempt"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    score = json.loads(done.stdout)
    assert list(score) == ["task", "profile", "status", "raw", "reward", "message", "details", "seconds"]
    assert (score["task"], score["profile"], score["status"], score["raw"]) == ("primes", "cpu", "valid", 0.5)


def test_a_broken_reference_fails_the_validation_and_says_where(primes: Path, tmp_path: Path) -> None:
    broken = tmp_path / "primes"
    shutil.copytree(primes, broken)
    reference = broken / "reference" / "solution.py"
    reference.write_text(reference.read_text().replace("number > 1", "number > 10_000"))
    done = re_bench("validate", broken)
    assert done.returncode == 1
    assert "FAILED: reward 1 +- 0.05, got" in done.stdout


def test_installed_as_a_package_it_stands_beside_the_five(primes: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(primes)], check=True, capture_output=True)
    listed = re_bench("tasks", "--json", path=site)
    assert listed.returncode == 0, listed.stderr
    assert set(json.loads(listed.stdout)) > {"primes", "triton_cumsum"}
    scored = re_bench("validate", "primes", path=site)
    assert scored.returncode == 0, scored.stdout + scored.stderr
    by_id = re_bench("workspace", "example_primes", tmp_path / "attempt", path=site)
    assert by_id.returncode == 0, by_id.stderr
