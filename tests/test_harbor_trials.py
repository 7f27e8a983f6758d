"""Harbor itself runs the exported tasks: the oracle gets 1, nop 0, cheats nothing; ``nox -s harbor_test``.

``RE_BENCH_HARBOR`` is Harbor's command, of an environment of its own, since it needs Python 3.12. No container is
made: ``tests/harbor/sandbox_environment.py`` says what runs instead, and what that does not prove.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[1]
HARBOR = os.environ.get("RE_BENCH_HARBOR", "")
ENVIRONMENT = "sandbox_environment:SandboxEnvironment"
CHEATS = {
    "fix_embedding": ("nan_values", "small_as_large", "pickle_payload"),
    "restricted_mlm": ("division", "nan_weights", "read_around"),
    "rust_codecontests": ("answer_table", "early_exit", "stub_judge"),
    "small_scaling_law": ("nan_prediction", "tiny_width", "claimed_flops"),
    "triton_cumsum": ("early_exit", "late_output", "one_program"),
}
"""Three of each task's; all run in ``nox -s score``."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not HARBOR, reason="NOT TESTED: no Harbor; type: nox -s harbor_test"),
]


def export(task: str, directory: Path, *options: str) -> None:
    command = [sys.executable, "-m", "re_bench.cli", "export", "harbor", task, str(directory), "--profile", "cpu"]
    subprocess.run([*command, *options], check=True, timeout=600)


def harbor(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    own = {
        "HARBOR_TELEMETRY": "off",
        "PYTHONPATH": str(TOP / "tests" / "harbor"),
        "RE_BENCH_TEST_PYTHON": sys.executable,
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the verifier's python3 is ours
    command = [HARBOR, *map(str, arguments)]
    return subprocess.run(
        command, env=os.environ | own | {"PATH": path}, capture_output=True, text=True, check=False, timeout=2900
    )


def trials(tasks: Path, agent: str, out: Path) -> dict[str, dict[str, Any]]:
    """Run an agent at all tasks of a directory, and return the results of its trials by the tasks' names."""
    done = harbor(
        "run", "-p", tasks, "-a", agent, "-e", ENVIRONMENT, "-o", out, "--job-name", agent, "-n", "1", "-q", "-y"
    )
    assert done.returncode == 0, done.stderr + done.stdout
    results = [json.loads(path.read_text()) for path in out.glob(f"{agent}/*/result.json")]
    for result in results:
        assert result["exception_info"] is None, result["exception_info"]
    return {result["task_name"].partition("/")[2]: result["verifier_result"]["rewards"] for result in results}


@pytest.mark.parametrize("task", sorted(CHEATS))
def test_the_oracle_gets_one_nop_nothing_and_cheats_no_more(task: str, tmp_path: Path) -> None:
    export(task, tmp_path / "tasks", "--cheats", *CHEATS[task])
    rewards = trials(tmp_path / "tasks", "oracle", tmp_path / "out")
    print(f"{task}: oracle: {rewards}")
    manifest = json.loads(re_bench_tasks())[task]["profiles"]["cpu"]["tolerance"]
    own = rewards.pop(task)
    assert own["valid"] == 1
    assert abs(own["reward"] - 1) <= manifest["reference"]
    assert {name: won["reward"] for name, won in rewards.items() if won["valid"] and won["reward"] > 0} == {}
    assert set(rewards) == {f"{task}-cheat-{name}" for name in CHEATS[task]}

    (tmp_path / "alone").mkdir()
    shutil.move(tmp_path / "tasks" / task, tmp_path / "alone" / task)
    (nothing,) = trials(tmp_path / "alone", "nop", tmp_path / "out").values()
    print(f"{task}: nop: {nothing}")
    assert nothing["valid"] == 1
    assert abs(nothing["reward"]) <= manifest["baseline"]


def re_bench_tasks() -> str:
    command = [sys.executable, "-m", "re_bench.cli", "tasks", "--json"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("task", sorted(CHEATS))
def test_harbor_finds_nothing_to_say_of_a_task(task: str, tmp_path: Path) -> None:
    export(task, tmp_path / "plain", "--verifier-sandbox", "none")
    done = harbor("lint", tmp_path / "plain")
    assert done.returncode == 0, done.stdout + done.stderr
    export(task, tmp_path / "compose", "--attempts", "3")
    with_compose = (
        subprocess.run(["docker", "compose", "version"], check=False).returncode == 0
        if shutil.which("docker")
        else False
    )
    if not with_compose:
        print("NOT TESTED: harbor lint on the compose files: needs the docker command with its compose plugin")
        (tmp_path / "compose" / "environment" / "docker-compose.yaml").unlink()
        (tmp_path / "compose" / "tests" / "docker-compose.yaml").unlink()
    done = harbor("lint", tmp_path / "compose")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failure_of_ours_is_an_exception_and_no_reward(tmp_path: Path) -> None:
    export("triton_cumsum", tmp_path / "task")
    script = tmp_path / "task" / "tests" / "test.sh"
    script.write_text(script.read_text().replace("--sandbox bubblewrap", "--sandbox container"))
    harbor(
        "run", "-p", tmp_path / "task", "-a", "nop", "-e", ENVIRONMENT, "-o", tmp_path, "--job-name", "job", "-q", "-y"
    )
    (path,) = tmp_path.glob("job/*/result.json")
    result = json.loads(path.read_text())
    assert result["exception_info"]["exception_type"] == "RewardFileNotFoundError"
    assert result["verifier_result"] is None
