"""Regression tests for problems of servers and clients of the protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from typing import Any

import pytest
from server_process import Raw, Server, events, opened, post, result, running_scorers, text, until

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("client", ["openreward", "ors"])
def test_white_space_at_chunk_edges_survives(server: Server, client: str) -> None:
    """Both clients strip leading white space of chunks of 4096 characters."""
    asyncio.run(white_space(server, client))


async def white_space(server: Server, client: str) -> None:
    async with opened(client, server.url, "example_quick") as session:
        await session.call_tool("bash", {"command": "echo 1 > answer.txt"})
        for script in ("' ' * 9000", "' x' * 4500", "'\\u2003\\u00a0' * 4000", "'a \\t\\n' * 2000"):
            program = f"import sys; sys.stdout.reconfigure(encoding='utf-8'); print({script}, end='|')"
            ran = await session.call_tool("bash", {"command": f'python3 -c "{program}"'})
            expected = eval(script)  # noqa: S307 - our own text
            assert text(ran) == f"{expected}|\n[exit status 0]"


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
    call: dict[str, Any] = {"name": "bash", "input": {"command": "sleep 2; echo once >> marks; wc -l < marks"}}
    task_id = session.start(call["name"], **call["input"])
    for _ in range(2):  # twice, also after its end
        status, reply = session.post("/rebench/call", call | {"task_id": task_id})
        assert status == 200
        assert result(reply)["output"]["blocks"][0]["text"] == "1\n[exit status 0]"
    assert session.call("bash", command="wc -l < marks")["output"]["blocks"][0]["text"] == "1\n[exit status 0]"
    assert events(session.post("/rebench/call", call | {"task_id": "0" * 32})[1])[0] == ("error", "unknown task_id")
    session.delete()


def test_scorer_failure_leaks_nothing(server: Server) -> None:
    asyncio.run(failing(server))


async def failing(server: Server) -> None:
    async with opened("openreward", server.url, "example_quick") as session:
        for word in ("crash", "leave"):
            await session.call_tool("bash", {"command": f"echo {word} > answer.txt"})
            outcome = await session.call_tool("answer", {})
            assert (outcome.reward, outcome.finished, outcome.metadata["status"]) == (0.0, False, "error")
            assert "4711" not in text(outcome) + json.dumps(outcome.metadata)
        await session.call_tool("bash", {"command": "echo -2 > answer.txt"})
        assert (await session.call_tool("answer", {})).reward == 1.0


def test_failed_final_answer_can_be_repeated(server: Server) -> None:
    session = Raw(server, "example_quick")
    session.call("bash", command="echo -1 > answer.txt")
    session.call("answer")
    session.call("bash", command="echo crash > answer.txt")
    ends = [session.call("answer", get_final_score=True)["output"] for _ in range(3)]
    assert [end["finished"] for end in ends] == [False, False, True]
    assert [end["reward"] for end in ends] == [0.0, 0.0, 0.5]
    session.delete()


def test_invalid_tool_input_is_rejected(server: Server) -> None:
    session = Raw(server, "example_quick")
    wrong: list[dict[str, Any]] = [
        {},
        {"command": 1},
        {"command": "true", "more": 1},
        {"command": "true", "timeout": -1},
    ]
    for arguments in wrong:
        assert session.call("bash", **arguments)["reason"] == "input_validation"
    assert session.call("answer", get_final_score="yes")["reason"] == "input_validation"
    assert session.call("nothing")["reason"] == "not_found"
    assert session.call("bash", command="echo hi")["output"]["blocks"][0]["text"] == "hi\n[exit status 0]"
    session.delete()


def test_validation_errors_do_not_repeat_input(server: Server) -> None:
    session, long = Raw(server, "example_quick"), "abcdefgh" * (1 << 18)
    for arguments in ({"command": long}, {"command": [long]}, {"command": "true", long: 1}):
        refused = session.call("bash", **arguments)
        assert (refused["reason"], len(json.dumps(refused)) < 1000) == ("input_validation", True)
    for body in ({"name": [long], "input": {}}, {"name": "bash", "input": long}, {long: 1}):
        status, reply = session.post("/rebench/call", body)
        assert (status, len(json.dumps(reply)) < 1000) == (422, True)
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
    session = Raw(server, "example_quick")
    session.call("bash", command="echo -1 > answer.txt; mkdir ~/.cache; cd ~/.cache; seq 10001 | xargs touch")
    assert session.call("answer")["output"]["metadata"]["status"] == "valid"
    session.call("bash", command="mkdir /workspace/pip; cp -r ~/.cache /workspace/pip")
    metadata = session.call("answer")["output"]["metadata"]
    assert metadata["status"] == "invalid"
    assert "more than 10000 files and directories, of which pip has at least" in metadata["message"]
    session.delete()


def test_only_the_id_of_a_spec_counts(server: Server) -> None:
    for spec in ({"id": "no_such_task"}, {}, {"id": 7}, {"id": ["example_quick"]}):
        status, reply = post(server.url, "/create", {"task_spec": spec}, {"X-Session-ID": "a-sid"})
        assert status == 404
        assert "example_quick" in reply["detail"]
    session = Raw(server, "example_quick", sid="a-sid")
    assert post(server.url, "/create", {"task_spec": {"id": "example_quick"}}, {"X-Session-ID": "a-sid"})[0] == 400
    session.delete()


def test_malformed_secrets_are_rejected_and_not_repeated(server: Server) -> None:
    for header in ("no base64 sk-abcdefghijkl", base64.b64encode(b'{"openai_api_key": "sk-abcdefghijkl"}').decode()):
        headers = {"X-Session-ID": "secret", "X-Secrets": header}
        status, reply = post(server.url, "/create", {"task_spec": {"id": "example_quick"}}, headers)
        assert status == 500
        assert "abcdefghijkl" not in json.dumps(reply) + server.log.read_text()
