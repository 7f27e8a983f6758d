"""An eval set of five tasks, two agents and three epochs, killed and continued: ``nox -s tools -- inspect``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from integrations.inspect.tests.conftest import InspectProcess

TASK_FILE = Path(__file__).with_name("eval_set_tasks.py")
EPOCHS = 3
TASKS_AND_AGENTS = 10


def ended(inspect: InspectProcess) -> int:
    records = inspect.state.glob("*/sessions/*/session.json")
    return sum(json.loads(path.read_text())["state"] == "ended" for path in records)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_an_eval_set_goes_on_after_a_kill(inspect: InspectProcess) -> None:
    shutil.copy(TASK_FILE, inspect.logs.parent)  # eval-set takes relative paths alone
    command = ["eval-set", TASK_FILE.name, "--log-dir", str(inspect.logs), "--epochs", str(EPOCHS)]
    command += ["--max-tasks", "2", "--max-samples", "2", "--max-sandboxes", "2", "--log-buffer", "1"]
    with inspect.start(*command) as process:
        while ended(inspect) < TASKS_AND_AGENTS:
            assert process.poll() is None, process.communicate()
            time.sleep(0.5)
        process.send_signal(signal.SIGKILL)
    killed_after = ended(inspect)
    deadline = time.monotonic() + 30
    while inspect.processes() and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not inspect.processes()
    done = inspect.run(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    sessions = len(list(inspect.state.glob("*/sessions/*")))
    print(f"killed after {killed_after} samples; {sessions} sessions in all", flush=True)
    assert sessions < 2 * EPOCHS * TASKS_AND_AGENTS - killed_after + 5  # what had ended was not run again
    logs = [log for log in inspect.read_logs() if log.status == "success"]
    assert len({log.eval.task for log in logs}) == TASKS_AND_AGENTS
    for log in logs:
        assert log.samples
        assert {sample.epoch for sample in log.samples} == {1, 2, 3}
        for sample in log.samples:
            assert sample.error is None
            assert sample.scores
            assert abs(sample.scores["reward"].as_float()) < 0.15
    report = subprocess.run(
        [sys.executable, "-m", "re_bench.cli", "report", str(inspect.logs), "--json"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr
    runs = json.loads(report.stdout)["runs"]
    assert len(runs) == EPOCHS * TASKS_AND_AGENTS
    assert {run["state"] for run in runs} == {"ended"}
