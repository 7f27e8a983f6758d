"""A workspace, a scripted server that plays the model, and the agent as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from mlab_agent.fake_server import Completion, ErrorResponse, FakeServer
from mlab_agent.trace import has_begun, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

KEY = "sk-test-0123456789abcdef"
TRAIN = 'import sys\n\nRATE = 0.1\nprint("loss", 1 - RATE, *sys.argv[1:])\n'


def step(action: str, given: dict[str, Any] | str, plan: str = "1. Look. 2. Improve.") -> str:
    """Return a reply in the format of the seed."""
    written = given if isinstance(given, str) else json.dumps(given)
    return (
        f"Reflection: none\nResearch Plan and Status: {plan}\nFact Check: nothing new\nThought: go on\n"
        f"Action: {action}\nAction Input: {written}"
    )


@dataclass
class Scripted:
    """A model that says replies in turn as steps, the last one again and again; other prompts go to ``serve``."""

    replies: Sequence[str | Completion | ErrorResponse | Callable[[dict[str, Any]], Any]]
    serve: Callable[[str], Any] = lambda _prompt: "It is as expected."
    replies_given: int = 0
    served: list[str] = field(default_factory=list)

    def __call__(self, request: dict[str, Any]) -> Completion | ErrorResponse | str:
        messages = request["messages"]
        if len(messages) == 1:
            self.served.append(messages[0]["content"])
            answer: Completion | ErrorResponse | str = self.serve(messages[0]["content"])
            return answer
        reply = self.replies[min(self.replies_given, len(self.replies) - 1)]
        self.replies_given += 1
        made: Completion | ErrorResponse | str = reply(request) if callable(reply) else reply
        return made


@dataclass
class Agents:
    """Starts the agent on a workspace."""

    top: Path
    server: FakeServer
    model: Scripted

    @property
    def workspace(self) -> Path:
        return self.top / "workspace"

    @property
    def run(self) -> Path:
        return self.top / "run"

    @property
    def trace(self) -> Path:
        return self.run / "trace.jsonl"

    @property
    def submission(self) -> str:
        return (self.workspace / "submission.txt").read_text()

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        if not has_begun(self.trace):
            return []
        return [event for event in read_trace(self.trace) if kind in {None, event["kind"]}]

    def observations(self) -> list[str]:
        return [event["text"] for event in self.events("observation")]

    def start(self, *options: str, resume: bool = False, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "mlab_agent"]
        if resume:
            command += ["resume", str(self.run), *options]
        else:
            task = self.top / "task.txt"
            command += ["--workdir", str(self.workspace), "--task-file", str(task), "--run", str(self.run)]
            command += ["--model", "scripted", "--base-url", self.server.url]
            command += options if "--tools" in options else ["--tools", "text", *options]
        env = {**os.environ, "OPENAI_API_KEY": KEY, **environment}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, cwd=self.top)

    def finish(self, *options: str, resume: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
        with self.start(*options, resume=resume, **environment) as process:
            out, err = process.communicate(timeout=100)
            return subprocess.CompletedProcess([], process.returncode, out, err)

    def kill_when(self, ready: Callable[[], bool], *options: str, resume: bool = False, **environment: str) -> None:
        """Start the agent, and kill it with SIGKILL as soon as something holds."""
        with self.start(*options, resume=resume, **environment) as process:
            end = time.monotonic() + 60
            while not ready():
                assert time.monotonic() < end, "it did not come to that"
                assert process.poll() is None, process.communicate()
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)


@pytest.fixture
def say() -> Callable[..., str]:
    return step


@pytest.fixture
def key() -> str:
    return KEY


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "train.py").write_text(TRAIN)
    (tmp_path / "task.txt").write_text("Lower the loss that train.py prints.\n")
    model = Scripted([])
    with FakeServer(model) as server:
        yield Agents(tmp_path, server, model)
