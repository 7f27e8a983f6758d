"""An ORS server that is killed and restarted during a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest
from free_port import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agents.mlab.tests.conftest import AgentAtServer


class OwnServer:
    """A server that is killed and started again on the same state and port."""

    def __init__(self, state: Path, site: Path) -> None:
        self.state, self.site = state, site
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "re_bench.cli", "serve", "--port", str(self.port), "--profile", "cpu"]
        command += ["--task=example_quick"]
        environment = {name: value for name, value in os.environ.items() if "KEY" not in name}
        environment["PYTHONPATH"] = str(self.site)
        with (self.state / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, "--state", str(self.state)], stderr=log, env=environment)

    def wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):  # noqa: S310 - http
                    return
            except OSError:
                assert time.monotonic() < deadline, (self.state / "log").read_text()
                time.sleep(0.1)

    def end(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(60)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


@pytest.fixture
def own_server(ors_url: str, ors_site: Path, tmp_path: Path) -> Iterator[OwnServer]:
    assert ors_url  # what it needs is installed
    (tmp_path / "server").mkdir()
    server = OwnServer(tmp_path / "server", ors_site)
    server.wait()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_run_survives_a_restart_of_the_server(
    own_server: OwnServer, agent_at: Callable[[str], AgentAtServer], say: Callable[..., str], number: int
) -> None:
    slow = f"echo begun; touch begun; sleep {3 if number == signal.SIGTERM else 60}; echo ended\n"

    def killed_during_the_script() -> str:
        def kill_and_start() -> None:
            while not list(own_server.state.glob("sessions/*/workspace/begun")):
                time.sleep(0.02)
            time.sleep(0.5)
            own_server.end(number)
            time.sleep(1)
            own_server.start()

        threading.Thread(target=kill_and_start, daemon=True).start()
        return say("Execute Script", {"filename": "slow.sh"})

    def killed_for_good() -> str:
        own_server.end()
        return say("List Files", {})

    with agent_at(own_server.url) as agent:
        agent.replies = [
            say("Write File", {"filename": "slow.sh", "content": slow}),
            killed_during_the_script,
            say("Score", {}),
            killed_for_good,
        ]
        done = agent.finish("--server-wait", "20s")
        assert done.returncode == 1
        assert f"mlab-agent resume {agent.run}" in done.stderr
        assert "no final answer (workspace)" in done.stderr
        assert "Traceback" not in done.stderr + json.dumps(agent.events("end"))
        assert "begun" in agent.observation(1)
        drained = number == signal.SIGTERM  # running commands get their time
        # a server that drains says "not now", so the client may never meet a closed port
        assert drained or "answers again, in the same session" in done.stderr
        assert ("ended" in agent.observation(1)) == drained
        assert ("The server stopped it:" in agent.observation(1)) == (not drained)
        assert "Attempt 1: valid" in agent.observation(2)
        sid = json.loads((agent.run / "home" / "session.json").read_text())["sid"]
        refused = agent.finish(resume=True)
        assert refused.returncode == 2
        assert "there is no session at http" in refused.stderr
        own_server.start()
        own_server.wait()
        agent.replies = [say("Score", {}), say("Final Answer", {"final_answer": "x"})]
        done = agent.finish(resume=True)
        assert done.returncode == 0, done.stderr
        assert "resumed, in the same session of the server" in done.stderr
        assert "slow.sh" in agent.observation(3)
        assert "Attempt 2: valid" in agent.observation(4)
    assert sid not in (agent.run / "trace.jsonl").read_text() + done.stderr + refused.stderr
    assert not (agent.run / "home" / "session.json").exists()
