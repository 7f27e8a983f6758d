"""Test every task as a family of METR's Task Standard, from install to final score."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.append(str(Path(__file__).parent))

from metr_container import FAMILY, TOP, Container

from re_bench.data.cache import cache_directory
from re_bench.processes import temporary_directory
from re_bench.task.discovery import TaskFolder, open_task
from re_bench.task.workspace import build_spec_of, solution_files
from re_bench_metr.export import export_metr

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

TASKS = sorted(path.parent for path in TOP.glob("tasks/*/task.toml"))
PROFILE = "cpu"


@pytest.fixture(scope="module")
def python() -> Iterator[Path]:
    """Return the Python of an environment with only pip, into which all families install."""
    with temporary_directory("re-bench-metr-") as directory:
        directory.chmod(0o755)  # submissions run as other users
        subprocess.run([sys.executable, "-m", "venv", str(directory / "environment")], check=True)
        yield directory / "environment" / "bin" / "python"


@pytest.mark.parametrize("sandbox", ["bubblewrap", "user"])
@pytest.mark.parametrize("directory", TASKS, ids=lambda path: path.name)
def test_baseline_cheat_and_reference(directory: Path, sandbox: str, python: Path, tmp_path: Path) -> None:
    task = open_task(directory)
    if sandbox == "user" and task.manifest.model is not None:
        pytest.skip("a task with a model needs bubblewrap")
    container = started(task, python, tmp_path, sandbox)
    where = container.run(python, "-c", "import importlib.util as u; print(u.find_spec('re_bench'))")
    assert where.stdout == "None\n", "re_bench must only come from the export"
    secret = f"{FAMILY}/assets/tasks/{task.name}"
    assert container.run("ls", f"{secret}/score.py").returncode == 0
    assert container.as_agent(f"cat {secret}/score.py {secret}/task.toml; ls {secret}/reference").stdout == ""

    tolerance = task.profile(PROFILE).tolerance
    log = [score_of(container, task, "baseline")]
    assert log[0]["score"] == pytest.approx(0, abs=tolerance.baseline)
    assert log[0]["details"]["details"]["sandbox"].split()[0] == sandbox
    log.append(score_of(container, task, f"cheats/{first_invalid_cheat(task)}"))
    assert math.isnan(log[-1]["score"]), log[-1]
    assert log[-1]["message"]["status"] == "invalid"
    if sandbox == "user" and build_spec_of(task, "reference") is not None:
        return  # the other sandbox's test runs the command
    log.append(score_of(container, task, "reference"))
    assert log[-1]["score"] == pytest.approx(1, abs=tolerance.reference)
    shown = {"raw", "unit", "reward"} & log[-1]["message"].keys()
    assert bool(shown) is task.manifest.show_score
    final = container.operate("score", "--task", PROFILE, "--score-log", json.dumps(log))
    assert final == pytest.approx(1, abs=tolerance.reference)
    print(f"{task.name}: {', '.join(str(entry['score']) for entry in log)}; final {final}")


def started(task: TaskFolder, python: Path, place: Path, sandbox: str) -> Container:
    """Return a container with a family of the task, installed and started."""
    family = place / f"re_bench_{task.name}"
    export_metr(task, family, PROFILE, sandbox)
    cache_directory().mkdir(parents=True, exist_ok=True)
    container = Container(place / "container", family, python, cache_directory())
    container.operate("install")
    container.operate("start", "--task", PROFILE)
    return container


def first_invalid_cheat(task: TaskFolder) -> str:
    """Return a cheat that is invalid in the profile, without a command if possible."""
    expected = {name: cheat for name, cheat in sorted(task.manifest.cheats.items()) if cheat.runs_on(PROFILE)}
    refused = [name for name, cheat in expected.items() if cheat.expectation(PROFILE).expect == "invalid"]
    return min(refused, key=lambda name: expected[name].make is not None)


def score_of(container: Container, task: TaskFolder, variant: str) -> dict[str, Any]:
    """Copy a solution over a fresh workspace, run its command, and score it."""
    workspace, fresh = container.place / "home" / "agent" / "solution", container.place / "fresh"
    if not fresh.exists():
        shutil.copytree(workspace, fresh)
    shutil.rmtree(workspace)
    shutil.copytree(fresh, workspace)
    for path, name in solution_files(task, variant, PROFILE):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, workspace / name)
    build_spec = build_spec_of(task, variant)
    if build_spec is not None:
        command = " ".join(build_spec.command).replace("python", str(container.python), 1)
        variables = ("env", f"RE_BENCH_PROFILE={PROFILE}", "RE_BENCH_SEED=0")
        made = container.run(*variables, "sh", "-c", f"cd /home/agent/solution && exec {command}")
        assert made.returncode == 0, made.stderr[-2000:]
    result: dict[str, Any] = container.operate("intermediate_score", "--task", PROFILE)
    return result
