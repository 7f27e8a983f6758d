"""The agent in docs/environment.md, with a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from server_process import SECRET_NAMES, TOP, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

SCRIPT: list[list[tuple[str, str]]] = [
    [("bash", '{"command": "cat answer.txt"}'), ("answer", "{}")],
    [("no_such_tool", "{}"), ("bash", "no JSON"), ("bash", "{}")],
    [("bash", '{"command": "echo -1.5 > answer.txt"}')],
    [("answer", '{"get_final_score": true}')],
]


class Model(ThreadingHTTPServer):
    """Plays the script and records its requests."""

    def __init__(self, script: list[list[tuple[str, str]]]) -> None:
        super().__init__(("127.0.0.1", 0), Playing)
        self.script = list(script)
        self.asked: list[Any] = []


class Playing(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        calls = self.server.script.pop(0) if self.server.script else []
        message: dict[str, Any] = {"role": "assistant", "content": "hm"}
        if calls:
            message["tool_calls"] = [
                {"id": f"call-{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for number, (name, arguments) in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        body = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    text = (TOP / "docs" / "environment.md").read_text()
    results = re.search(r"<!-- example: agent.py -->\n```python\n(.*?)```", text, re.DOTALL)
    assert results
    lines = results[1].splitlines()
    assert len([line for line in lines if line.strip()]) <= 45
    path = tmp_path / "agent.py"
    path.write_text(results[1])
    return path


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    with Model(request.param) as running:
        threading.Thread(target=running.serve_forever).start()
        yield running
        running.shutdown()


def run_agent(server: Server, agent: Path, model: str, *tasks: str) -> subprocess.CompletedProcess[str]:
    """Run the documented agent."""
    kept = {name: value for name, value in os.environ.items() if name not in SECRET_NAMES}
    address = {"RE_BENCH_SERVER": server.url, "OPENAI_BASE_URL": model}
    return subprocess.run(
        [sys.executable, str(agent), *tasks], capture_output=True, text=True, check=False,
        env=kept | address | {"OPENAI_API_KEY": "none", "MODEL": "m", "OPENREWARD_DISABLE_UPDATE_CHECK": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(SCRIPT, id="ends it"),
        pytest.param(SCRIPT[:3], id="does not end it", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_documented_agent(server: Server, agent: Path, model: Model) -> None:
    done = run_agent(server, agent, f"http://127.0.0.1:{model.server_port}/v1", "example_quick")
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout.splitlines()[-1])
    assert reply["task"] == "example_quick"
    assert reply["reward"] == 0.75
    assert (reply["attempts"], reply["aggregation"]) == (2, "min")
    outcome = [message["content"] for message in model.asked[2]["messages"] if message["role"] == "tool"]
    assert outcome[0] == "0\n[exit status 0]"
    assert "Attempt 1: valid" in outcome[1]
    assert "not_found" in outcome[2]
    assert "input_validation" in outcome[4]
    assert [tool["function"]["name"] for tool in model.asked[0]["tools"]] == ["answer", "bash"]
