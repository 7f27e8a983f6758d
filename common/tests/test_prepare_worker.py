"""Test the worker process that prepares tasks: requests, failures, and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from re_bench.errors import ReBenchError
from re_bench.processes import StoppedError, is_running, request_stop
from re_bench.task.prepare import PrepareWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from re_bench.task.discovery import TaskFolder

pytestmark = pytest.mark.integration

RANDOMIZE = """    randomized = True

    def randomize_workspace(self, setup: Setup[str], directory: Path, seed: int | None) -> None:
        import os
        print("chatter of another library")
        if directory.name == "fatal":
            os.kill(os.getpid(), 9)
        (directory / "own").write_text(f"{setup.profile_name} {os.getpid()} {seed}")

    def score("""
PARENT = """
import sys, time
from pathlib import Path
from re_bench.task.discovery import open_task
from re_bench.task.prepare import PrepareWorker
PrepareWorker(open_task(Path(sys.argv[1])), "cpu", lambda line: print(line, flush=True)).start()
print("started", flush=True)
time.sleep(600)
"""
CHATTER = '            print("chatter of a library")'


@pytest.fixture
def personal(made_up: TaskFolder, change: Callable[[TaskFolder, str, str, str], TaskFolder]) -> TaskFolder:
    """Return the example task with workspaces that differ."""
    return change(made_up, "score.py", "    def score(", RANDOMIZE.rstrip("\n"))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def worker(personal: TaskFolder, said: list[str]) -> Iterator[PrepareWorker]:
    worker = PrepareWorker(personal, "cpu", said.append)
    yield worker
    worker.close()


def directories(tmp_path: Path, *names: str) -> list[Path]:
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.mkdir()
    return paths


def test_one_worker_creates_many_workspaces(worker: PrepareWorker, said: list[str], tmp_path: Path) -> None:
    template, one, two = directories(tmp_path, "template", "one", "two")
    worker.start()
    assert (worker.randomized, said) == (True, ["making what cpu needs"])
    worker.create_workspace(template)
    assert {path.name: path.read_text() for path in template.iterdir()} == dict.fromkeys(
        ("data", "both"), "prepared for cpu"
    )
    for path in (one, two):
        worker.randomize_workspace(path, 5)
    own = {(path / "own").read_text() for path in (one, two)}
    assert len(own) == 1
    pid = int(own.pop().split()[1])
    worker.close()
    assert not Path(f"/proc/{pid}").exists()


def test_worker_reports_whether_workspaces_differ(made_up: TaskFolder) -> None:
    worker = PrepareWorker(made_up, "cpu", print)
    worker.start()
    assert not worker.randomized
    worker.close()


def test_a_worker_survives_errors_and_is_restarted_after_a_crash(worker: PrepareWorker, tmp_path: Path) -> None:
    fatal, one = directories(tmp_path, "fatal", "one")
    with pytest.raises(ReBenchError, match="FileNotFoundError"):
        worker.randomize_workspace(tmp_path / "nowhere")
    with pytest.raises(ReBenchError, match="was killed by signal 9 in profile cpu"):
        worker.randomize_workspace(fatal)
    worker.randomize_workspace(one)
    assert (one / "own").exists()


def test_a_stop_request_stops_the_worker(
    made_up: TaskFolder, change: Callable[[TaskFolder, str, str, str], TaskFolder]
) -> None:
    change(made_up, "score.py", CHATTER, "            import time\n            time.sleep(60)")
    started = time.monotonic()
    with request_stop(), pytest.raises(StoppedError):
        PrepareWorker(made_up, "cpu", print).start()
    assert time.monotonic() - started < 50


@pytest.mark.parametrize("busy", [False, True])
def test_the_worker_ends_when_its_parent_is_killed(
    made_up: TaskFolder, change: Callable[[TaskFolder, str, str, str], TaskFolder], *, busy: bool
) -> None:
    if busy:
        change(made_up, "score.py", CHATTER, "            import time\n            time.sleep(600)")
    command = [sys.executable, "-c", PARENT, str(made_up.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "making what cpu needs\n"
        assert busy or parent.stdout.readline() == "started\n"
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while is_running(int(child)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
