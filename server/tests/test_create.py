"""What may be asked for when a session is created, and what the log keeps of a request that is wrong."""

from __future__ import annotations

import http.client
import threading
from typing import Any

import pytest
from server_process import Raw, Server, post, until

BODY = {"task_spec": {"id": "example_quick"}, "env_name": "rebench"}


def names(server: Server) -> list[str]:
    return [one["name"] for one in server.health()["sessions"]]


@pytest.mark.parametrize("toolset", ["web", "cli", "no-such-toolset"])
def test_a_toolset_is_refused_before_there_is_a_session(server: Server, toolset: str) -> None:
    status, reply = post(server.url, "/create", BODY | {"toolset_name": toolset}, {"X-Session-ID": "with-tools"})
    assert (status, "tools of its own" in reply["detail"]) == (400, True)
    assert names(server) == []


def test_an_id_that_is_asked_for_many_times_at_once_is_one_session(server: Server) -> None:
    before, statuses = server.workspaces(), list[int]()
    headers = {"X-Session-ID": "many"}
    callers = [
        threading.Thread(target=lambda: statuses.append(post(server.url, "/create", BODY, headers)[0]))
        for _ in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(statuses) == [200, *[400] * 7]
    assert len(names(server)) == 1
    post(server.url, "/delete", {}, headers)
    until(lambda: names(server) == [] and server.workspaces() == before)


def test_a_secret_in_a_wrong_place_is_not_in_the_log(server: Server) -> None:
    wrong: Any = BODY | {"secrets": {"openai_api_key": "plain-secret-0815"}}
    assert post(server.url, "/create", wrong, {"X-Session-ID": "wrong"})[0] == 422
    session = Raw(server, "example_quick")
    assert session.call("bash", command="true", key="plain-secret-0816")["reason"] == "input_validation"
    assert session.call("bash", command="x" * (2 << 20))["reason"] == "input_validation"
    session.delete()
    text = server.log.read_text()
    assert "plain-secret" not in text
    assert max(map(len, text.splitlines())) < 10_000


def test_a_request_without_a_length_is_refused(server: Server) -> None:
    connection = http.client.HTTPConnection(server.url.rpartition("/")[2], timeout=20)
    headers = {"X-Session-ID": "long", "Content-Type": "application/json"}
    for path in ("/create", "/rebench/tasks"):
        connection.request("POST", path, iter([b" " * (1 << 20)] * 17), headers, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, b"Content-Length" in answer.read()) == (411, True)
    connection.close()
