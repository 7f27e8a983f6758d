"""A session keeps the task instance with which its workspace was created."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from example_tasks import experiment_command, make_tasks
from server_process import Raw, Server, serving

from re_bench.attempts.log import AttemptLog
from re_bench.data.instances import MACHINE_FILE, choose_instance, secret_name

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.attempts.log import Attempt

pytestmark = pytest.mark.integration

TASK = "example_equipped"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example packages; scorer and meter of ``equipped`` add the instance to their results."""
    monkeypatch.setenv("RE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RE_BENCH_INSTANCES", raising=False)
    site = make_tasks(tmp_path / "site")
    change(site / "equipped" / "task.toml", 'device = "cpu"', 'device = "cpu"\ninstance = "chosen"')
    change(site / "equipped" / "score.py", "float(text),", "float(text) + job.instance_number,")
    change(site / "equipped" / "score.py", '"run": run', '"run": run + setup.instance')
    return site


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def logged(server: Server, event: str) -> list[object]:
    return [entry.get("instance") for entry in server.events() if entry["event"] == event]


def attempts(server: Server, number: int) -> list[Attempt]:
    return list(AttemptLog(server.sessions()[number] / "attempts.jsonl").read().attempts)


def test_restored_session_keeps_its_instance(tmp_path: Path, site: Path) -> None:
    choose_instance("equipped", "cpu", 30)
    with serving(tmp_path / "server", site, tasks=[TASK]) as server:
        choose_instance("equipped", "cpu", 50)  # a running server does not follow
        old = Raw(server, TASK)
        old.says("echo 1 > answer.txt")
        old.call("answer")
        assert (logged(server, "task_instance"), logged(server, "session_opened")) == ([30], [30])
        assert [record["instance"] for record in server.records().values()] == [30]
        server.end(signal.SIGKILL)
    with serving(tmp_path / "server", site, tasks=[TASK]) as server:
        old.server = server
        assert '"run": 31' in old.says(experiment_command(16))
        old.call("answer")
        old.says("echo leave > answer.txt")
        old.call("answer")
        scores = [(attempt.status, attempt.raw, attempt.details["instance"]) for attempt in attempts(server, 0)]
        assert scores == [("valid", 31.0, 30), ("valid", 31.0, 30), ("error", None, 30)]
        new = Raw(server, TASK)
        new.says("echo 1 > answer.txt")
        assert '"run": 51' in new.says(experiment_command(16))
        new.call("answer")
        assert [(attempt.raw, attempt.details["instance"]) for attempt in attempts(server, 1)] == [(51.0, 50)]
        assert logged(server, "task_instance") == [30, 50]
        assert logged(server, "session_restored") == [30]


def test_changed_machine_secret_is_logged(tmp_path: Path, site: Path) -> None:
    change(site / "quick" / "task.toml", 'device = "cpu"', 'device = "cpu"\ninstance = "secret"')
    with serving(tmp_path / "server", site, tasks=["example_quick"]) as server:
        session = Raw(server, "example_quick")
        session.says("true")
        name = secret_name()
        assert logged(server, "task_instance") == [name]
        server.end(signal.SIGKILL)
    (tmp_path / "cache" / MACHINE_FILE).unlink()
    with serving(tmp_path / "server", site, tasks=["example_quick"]) as server:
        (changed,) = [entry for entry in server.events() if entry["event"] == "instance_changed"]
        assert (changed["instance"], changed["now"]) == (name, secret_name())
        assert name != secret_name()
