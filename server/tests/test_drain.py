"""SIGTERM lets running calls finish; a second signal or the time limit interrupts them."""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from server_process import Raw, Server, command_lines_naming, post, running_scorers, serving, until

from re_bench.attempts.log import AttemptLog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

TRUE = {"name": "bash", "input": {"command": "true"}}


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(function()))
    thread.start()
    return thread, outcome


def test_sigterm_lets_running_calls_finish(tmp_path: Path, site: Path) -> None:
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
    with serving(tmp_path, site) as server:
        commanded.server = server
        assert commanded.says("cat file").endswith("unchanged.]\ndone\n[exit status 0]")
        interrupted(server, commanded)


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


def test_drain_timeout_interrupts_commands(tmp_path: Path, site: Path) -> None:
    with serving(tmp_path, site, "--drain", "0.5") as server:
        session = Raw(server, "example_quick")
        caller, outcome = in_background(lambda: session.call("bash", command="sleep 60")["output"]["metadata"])
        until(lambda: "bash" in doing(server))
        assert server.end() == 128 + signal.SIGTERM
        caller.join()
        assert outcome[0]["status"] == "interrupted"
        assert len(server.workspaces()) == 1


def doing(server: Server) -> list[str]:
    return [one["doing"] for one in server.health()["sessions"]]
