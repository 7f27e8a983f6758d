"""SIGTERM lets running calls finish; a second signal or the time limit interrupts them. Sessions stay open."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Raw, Server, command_lines_naming, post, re_bench, running_scorers, serving, until

from re_bench.attempts.log import AttemptLog
from re_bench.cli.main import main
from re_bench.data.jsonl import read_objects

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

TRUE = {"name": "bash", "input": {"command": "true"}}


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(function()))
    thread.start()
    return thread, outcome


def test_sigterm_lets_running_calls_finish(tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path, site) as server:
        commanded, answered, idle = (Raw(server, "example_quick") for _ in range(3))
        answered.says(f"echo wait {tmp_path}/go -1 > answer.txt")
        wait = "until [ -e go ]; do sleep 0.1; done"
        command, said = in_background(lambda: commanded.says(f"{wait}; echo done | tee file"))
        answer, outcome = in_background(lambda: answered.call("answer")["output"]["metadata"])
        until(lambda: running_scorers(server) and len([one for one in doing(server) if one != "idle"]) == 2)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.health()["status"] == "draining")
        assert idle.post("/ping", {})[0] == 200
        status, reply = post(server.url, "/create", {"task_spec": {"id": "example_quick"}}, {"X-Session-ID": "new"})
        assert (status, "accepts no new sessions" in reply["detail"]) == (503, True)
        status, reply = idle.post("/rebench/call", TRUE)  # clients retry after 503
        assert (status, "shutting down" in reply["detail"]) == (503, True)
        for path in (tmp_path, *server.workspaces()):
            (path / "go").touch()
        assert server.process.wait(60) == 128 + signal.SIGTERM
        command.join()
        answer.join()
        assert (said, outcome[0]["raw"]) == (["done\n[exit status 0]"], -1.0)
        assert command_lines_naming(server.state) == []
    assert {one["state"] for one in listed(server.state, capsys)} == {"suspended"}
    with serving(tmp_path, site) as server:
        for session in (commanded, answered):
            session.server = server
        assert commanded.says("cat file").endswith("unchanged.]\ndone\n[exit status 0]")
        assert "wait" in answered.says("cat answer.txt")
        interrupted(server, commanded)
    transcripts_continue(server, site, capsys)


def listed(state: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["sessions", "list", "--json", "--state", str(state)]) == 0
    sessions: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["sessions"]
    return sessions


def transcripts_continue(server: Server, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Check the transcript of the session with a valid attempt, and end it without a server."""
    (name,) = [one["name"] for one in listed(server.state, capsys) if one["best_reward"] == 0.5]
    entries, _incomplete = read_objects(server.state / "sessions" / name / "transcript.jsonl")
    kinds = ["begin", "call", "call", "suspended", "resumed", "call", "suspended"]
    assert [(entry["seq"], entry["kind"]) for entry in entries] == list(enumerate(kinds))
    hours = [entry["hours_used"] for entry in entries]
    assert hours == sorted(hours)
    done = re_bench("sessions", "end", name[:-1], "--state", str(server.state), PYTHONPATH=str(site))
    assert done.returncode == 0, done.stderr
    assert f"{name}: ended with raw score -1, reward 0.5000, of 1 attempts" in done.stdout
    (ended,) = [one for one in listed(server.state, capsys) if one["name"] == name]
    assert (ended["state"], ended["reason"]) == ("ended", "ended by the operator")
    assert not (server.state / "sessions" / name / "workspace").exists()


def interrupted(server: Server, session: Raw) -> None:
    """End a server by two signals while it scores an attempt."""
    session.says("echo sleep 60 -1 > answer.txt")
    caller, outcome = in_background(lambda: session.call("answer")["output"]["metadata"])
    until(lambda: running_scorers(server))
    server.process.send_signal(signal.SIGTERM)
    until(lambda: server.health()["status"] == "draining")
    began = time.monotonic()
    assert server.end(signal.SIGINT) == 128 + signal.SIGINT
    assert time.monotonic() - began < 50
    caller.join()
    assert (outcome[0]["status"], "shutting down" in outcome[0]["message"]) == ("interrupted", True)
    (directory,) = [path for path in server.sessions() if (path / "workspace" / "file").exists()]
    (attempt,) = AttemptLog(directory / "attempts.jsonl").read().attempts
    assert (attempt.status, attempt.message) == ("error", "the server ended during the scoring of this attempt")
    assert command_lines_naming(server.state) == []


def test_shutdown_keeps_records_and_open_workspaces(tmp_path: Path, site: Path) -> None:
    """The time limit ends a command; the next server closes the sessions whose clients do not return."""
    with serving(tmp_path, site, "--drain", "0.5") as server:
        ended, idle, busy = (Raw(server, "example_quick") for _ in range(3))
        ended.call("answer")
        ended.says("mkdir -p locked/in; chmod 0 locked")
        ended.delete()
        idle.says("echo -1 > answer.txt")
        idle.call("answer")
        caller, outcome = in_background(lambda: busy.call("bash", command="sleep 60")["output"]["metadata"])
        until(lambda: "bash" in doing(server))
        sockets = Path((server.state / "sockets").read_text())
        assert server.end() == 128 + signal.SIGTERM
        caller.join()
        assert outcome[0]["status"] == "interrupted"
        scored = {"attempts.jsonl", "attempts.jsonl.records", "attempts.jsonl.submissions", "scorer.log"}
        kept = {"session.json", "transcript.jsonl"}
        files = [{path.name for path in directory.iterdir()} for directory in server.sessions()]
        opened = kept | {"home", "workspace"}
        assert sorted(files, key=len) == [opened, kept | scored, opened | scored]
        assert sorted(record["state"] for record in server.records().values()) == ["ended", "open", "open"]
        assert not sockets.exists()
        assert server.events()[-1]["event"] == "ended"
        assert command_lines_naming(server.state) == []
        was_open = [name for name, record in server.records().items() if record["state"] == "open"]
    with serving(tmp_path, site, "--reclaim", "0.5") as server:
        until(lambda: server.health()["sessions"] == [] and server.workspaces() == [])
        records = sorted((server.records()[name] for name in was_open), key=lambda record: record["attempts"])
        assert [record["state"] for record in records] == ["ended", "ended"]
        assert "did not return within 0.5 s" in records[0]["reason"]
        assert (records[0]["final"], records[1]["final"]["reward"]) == (None, 0.5)


def doing(server: Server) -> list[str]:
    return [one["doing"] for one in server.health()["sessions"]]
