"""Checks of servers of chat models, as `re-bench doctor --model` makes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.append(str(Path(__file__).parent))

from fake_server import Completion, ErrorResponse, FakeServer
from free_port import free_port

from re_bench.model_server import ModelServer
from re_bench.testing import run_command

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

Reply = Completion | ErrorResponse | str


def capable(request: dict[str, Any]) -> Reply:
    """Answer like a server that supports everything."""
    if request.get("tools"):
        return Completion(call=("read_file", '{"path": "train.py"}'))
    if request.get("stream"):
        return ErrorResponse(200, body=b'data: {"choices": [{"delta": {"content": "hello"}}]}\n\ndata: [DONE]\n\n')
    choice = {"message": {"content": "one two " if request.get("stop") else "1 2 3"}}
    usage = {"prompt_tokens": 9, "completion_tokens": 5}
    reply = {"model": "fake-1", "choices": [choice] * request.get("n", 1), "usage": usage}
    return ErrorResponse(200, body=json.dumps(reply).encode())


def refusing(name: str) -> Callable[[dict[str, Any]], Reply]:
    def answer(request: dict[str, Any]) -> Reply:
        return ErrorResponse(400, f"{name} is not supported") if request.get(name) else capable(request)

    return answer


def without_usage(_request: dict[str, Any]) -> Reply:
    return ErrorResponse(200, body=json.dumps({"choices": [{"message": {"content": "1 2"}}]}).encode())


def minimal(_request: dict[str, Any]) -> Reply:
    """Answer like a server that ignores what it does not know."""
    return "one two three four"


FAILED = {"answer": "problem"}
CASES: dict[str, tuple[Callable[[dict[str, Any]], Reply], dict[str, str], str]] = {
    "capable": (capable, {}, ""),
    "refuses n": (refusing("n"), {"n": "note"}, "refused: HTTP status 400: {"),
    "refuses tools": (refusing("tools"), {"tools": "note"}, "tools is not supported"),
    "ignores everything": (
        minimal, {"n": "note", "stop": "note", "stream": "note", "tools": "note"}, "stop sequences are ignored",
    ),
    "counts no tokens": (
        without_usage, {"usage": "note", "n": "note", "stream": "note", "tools": "note"}, "no token counts",
    ),
    "unknown model": (lambda _: ErrorResponse(404, "no such model"), FAILED, "no such model"),
    "no chat server": (lambda _: ErrorResponse(200, body=b"<html>"), FAILED, "not a chat completion: <html>"),
    "deep": (lambda _: ErrorResponse(200, body=b"[" * 100_000), FAILED, "not a chat completion"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_findings(name: str) -> None:
    answer, expected, text = CASES[name]
    with FakeServer(answer) as server:
        findings = list(ModelServer(server.url, "fake", "secret").examine())
    assert {one.check: one.status for one in findings if one.status != "ok"} == expected
    assert text in " ".join(one.found for one in findings)
    assert findings[0].found == "lists fake; context of 8192 tokens"
    assert set(server.authorizations) == {"Bearer secret"}


def test_command(tmp_path: Any) -> None:
    doctor = [sys.executable, "-m", "re_bench.cli", "doctor", "--model", "fake"]
    environment = os.environ | {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9"}
    with FakeServer(capable) as server:
        command = [*doctor, "--base-url", server.url]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "fake can be used"
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    for address, message in ((nowhere, "cannot be reached"), ("nonsense", "is not an address")):
        refused = run_command("doctor", "--model", "fake", "--base-url", address)
        assert refused.returncode == 1
        assert message in refused.stdout
