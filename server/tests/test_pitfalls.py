"""Interrupted, repeated, queued and failing calls."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from server_process import Raw, Server, events, result, running_scorers, until

pytestmark = pytest.mark.integration


def test_deleting_a_session_during_scoring(server: Server) -> None:
    """A cancellation that leaks from a tool would hang its caller."""
    session = Raw(server, "example_quick")
    session.call("bash", command="echo sleep 50 1 > answer.txt")
    outcome: list[object] = []
    caller = threading.Thread(target=lambda: outcome.append(session.call("answer")))
    caller.start()
    until(lambda: running_scorers(server))
    session.delete()
    caller.join(30)
    assert not caller.is_alive()
    assert "session ended during the scoring" in json.dumps(outcome)
    until(lambda: not running_scorers(server))
    assert [one for one in server.health()["sessions"] if one["task"] == "example_quick"] == []


def test_result_can_be_fetched_again_by_task_id(server: Server) -> None:
    session = Raw(server, "example_quick")
    call: dict[str, Any] = {"name": "bash", "input": {"command": "sleep 0.5; echo once >> marks; wc -l < marks"}}
    task_id = session.start(call["name"], **call["input"])
    for _ in range(2):  # twice, also after its end
        status, reply = session.post("/rebench/call", call | {"task_id": task_id})
        assert (status, result(reply)["output"]["blocks"][0]["text"]) == (200, "1\n[exit status 0]")
    assert session.says("wc -l < marks") == "1\n[exit status 0]"
    assert events(session.post("/rebench/call", call | {"task_id": "0" * 32})[1])[0] == ("error", "unknown task_id")
    session.delete()


def test_scorer_failure_leaks_nothing_and_can_be_repeated(server: Server) -> None:
    session = Raw(server, "example_quick")
    session.says("echo -1 > answer.txt")
    session.call("answer")
    for word in ("crash", "leave"):
        session.says(f"echo {word} > answer.txt")
        outcome = session.call("answer", get_final_score=True)["output"]
        assert (outcome["reward"], outcome["finished"], outcome["metadata"]["status"]) == (0.0, False, "error")
        assert "4711" not in json.dumps(outcome)
    outcome = session.call("answer", get_final_score=True)["output"]
    assert (outcome["reward"], outcome["finished"]) == (0.5, True)
    session.delete()


def test_queued_call_reports_its_wait(server: Server) -> None:
    session = Raw(server, "example_quick")
    command = "touch begun; until [ -e go ]; do sleep 0.1; done"
    first = threading.Thread(target=session.call, args=("bash",), kwargs={"command": command})
    first.start()
    (workspace,) = until(lambda: [path for path in server.workspaces() if (path / "begun").exists()])
    asked = session.start("answer")
    time.sleep(1.1)
    (workspace / "go").touch()
    output = session.result_of(asked, "answer")
    assert output["metadata"]["queued_s"] > 1
    seconds = f"{output['metadata']['queued_s']:.0f}"
    assert f"[waited {seconds} s for another call of this session]" in output["blocks"][0]["text"]
    assert session.call("bash", command="true")["output"]["metadata"]["queued_s"] < output["metadata"]["queued_s"]
    first.join()
    session.delete()


def test_home_is_not_submitted(server: Server) -> None:
    before, session = set(server.sessions()), Raw(server, "example_quick")
    session.says("echo -1 > answer.txt; mkdir ~/.cache; touch ~/.cache/packages")
    assert session.call("answer")["output"]["metadata"]["status"] == "valid"
    (directory,) = set(server.sessions()) - before
    (submission,) = (directory / "attempts.jsonl.submissions").iterdir()
    assert sorted(path.name for path in submission.iterdir()) == ["answer.txt", "notes.md"]
    session.delete()
