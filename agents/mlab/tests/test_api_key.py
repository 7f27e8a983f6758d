"""The key is only in requests: not in the run, the workspace, an environment, or the output."""

from __future__ import annotations

import base64
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration

LOOK = """\
import glob, os
print(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        print(path, open(path, "rb").read())
    except OSError as error:
        print(path, error.strerror)
open("environment.txt", "w").write(repr(dict(os.environ)))
"""


def files_with(top: Path, word: str) -> list[str]:
    forms = {word.encode(), base64.b64encode(word.encode())}
    return [str(path) for path in top.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)]


def test_key_is_in_no_file(agents: Agents, say: Callable[..., str], key: str) -> None:
    (agents.workspace / "look.py").write_text(LOOK)

    def telltale(_request: dict[str, Any]) -> ErrorResponse:
        return ErrorResponse(500, f"Incorrect API key provided: {key}")

    agents.model.replies = [
        telltale,
        say("Execute Script", {"filename": "look.py"}),
        say("Write File", {"filename": "key.txt", "content": "x"}, plan=f"I know {key}"),
        say("Final Answer", {"final_answer": "x"}),
    ]
    token = "hf_something"  # noqa: S105
    done = agents.finish_program(
        "--pass-variable", "HARMLESS", ALSO_THE_KEY=f"Bearer {key}", HF_TOKEN=token, HARMLESS="kept"
    )
    assert done.returncode == 0, done.stderr
    assert agents.server.authorizations[0] == f"Bearer {key}"
    seen = (agents.workspace / "environment.txt").read_text()
    assert "HARMLESS" in seen
    assert token not in seen
    assert files_with(agents.top, key) == []
    assert key not in done.stdout + done.stderr
    assert "[key]" in agents.trace.read_text()


def test_key_is_in_no_process_environment(agents: Agents, say: Callable[..., str]) -> None:
    key = "sk-test-of-this-test-alone"  # other tests start agents meanwhile
    wait = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
    (agents.workspace / "wait.py").write_text(wait)
    agents.model.replies = [say("Execute Script", {"filename": "wait.py"}), say("Final Answer", {"final_answer": "x"})]
    with agents.start(OPENAI_API_KEY=key) as process:
        while not (agents.workspace / "begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        for name in [str(process.pid), *filter(str.isdigit, os.listdir("/proc"))]:  # noqa: PTH208
            try:
                with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                    assert key.encode() not in file.read(), name
            except OSError:
                continue
        (agents.workspace / "go").touch()
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_key_variable_option(agents: Agents, say: Callable[..., str]) -> None:
    agents.model.replies = [say("Final Answer", {"final_answer": "x"})]
    assert agents.finish_program("--key-variable", "MY_KEY", MY_KEY="sk-other-key").returncode == 0
    assert agents.server.authorizations == ["Bearer sk-other-key"]
    assert files_with(agents.top, "sk-other-key") == []


def test_openai_server_needs_a_key(agents: Agents) -> None:
    done = agents.finish_program("--base-url", "https://api.openai.com/v1", OPENAI_API_KEY="")
    assert done.returncode == 2
    assert "OPENAI_API_KEY" in done.stderr
