"""The agent in docs/environment.md, with a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from fake_server import Completion, FakeServer
from server_process import SECRET_NAMES, TOP, Server

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

SCRIPT = [
    ("bash", '{"command": "cat answer.txt"}'),
    ("answer", "{}"),
    ("no_such_tool", "{}"),
    ("bash", "no JSON"),
    ("bash", "{}"),
    ("bash", '{"command": "echo -1.5 > answer.txt"}'),
    ("answer", '{"get_final_score": true}'),
]


def test_documented_agent(server: Server, tmp_path: Path) -> None:
    text = (TOP / "docs" / "environment.md").read_text()
    program = re.search(r"<!-- example: agent.py -->\n```python\n(.*?)```", text, re.DOTALL)
    assert program
    (tmp_path / "agent.py").write_text(program[1])
    kept = {name: value for name, value in os.environ.items() if name not in SECRET_NAMES}
    calls = iter(SCRIPT)
    with FakeServer(lambda _request: Completion("hm", next(calls))) as model:
        address = {"RE_BENCH_SERVER": server.url, "OPENAI_BASE_URL": model.url}
        done = subprocess.run(
            [sys.executable, str(tmp_path / "agent.py"), "example_quick"], capture_output=True, text=True, check=False,
            env=kept | address | {"OPENAI_API_KEY": "none", "MODEL": "m", "OPENREWARD_DISABLE_UPDATE_CHECK": "1"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout.splitlines()[-1])
    assert (reply["task"], reply["reward"]) == ("example_quick", 0.75)
    assert (reply["attempts"], reply["aggregation"]) == (2, "min")
    outcome = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]
    assert outcome[0] == "0\n[exit status 0]"
    assert "Attempt 1: valid" in outcome[1]
    assert "not_found" in outcome[2]
    assert "input_validation" in outcome[4]
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["answer", "bash"]
