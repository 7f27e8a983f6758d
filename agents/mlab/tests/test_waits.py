"""Waits for the models' server in whole runs."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import ErrorResponse, FakeServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import Agents

pytestmark = pytest.mark.integration


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_time_limit_excludes_waits(agents: Agents, say: Callable[..., str]) -> None:
    waits = agents.top / "waits.jsonl"
    for wait_s in (3, 9, 31):  # a busy machine may need longer than the first for the rest
        shutil.rmtree(agents.run, ignore_errors=True)
        waits.unlink(missing_ok=True)
        busy = ErrorResponse(429, "slow down", headers={"Retry-After": f"{wait_s}"})
        agents.model.replies = [busy, say("List Files", {"dir_path": "."}), say("Final Answer", {"final_answer": "ok"})]
        agents.model.replies_given = 0
        began = time.monotonic()
        done = agents.finish("--max-time", f"{wait_s - 1}", RE_BENCH_WAITS=str(waits))  # less than it waits
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began > wait_s
    assert lines(waits) == lines(agents.run / "waits.jsonl")
    assert sum(wait["ended"] - wait["began"] for wait in lines(waits)) >= wait_s
    assert [event["reason"] for event in agents.events("wait")] == [wait["reason"] for wait in lines(waits)]
    assert agents.events("end")[0]["elapsed"] < wait_s - 1


def test_time_limit_after_a_wait_and_a_resume(agents: Agents, say: Callable[..., str]) -> None:
    busy = ErrorResponse(429, headers={"Retry-After": "1"})
    script = say("Write File", {"filename": "hang.py", "content": "import time; time.sleep(600)"})
    agents.model.replies = [busy, script, ErrorResponse(429, headers={"Retry-After": "30"})]
    agents.kill_when(lambda: len(agents.events("retry")) == 2, "--max-time", "1h")
    elapsed = agents.events()[-1]["elapsed"]
    assert elapsed < 60
    run = say("Execute Script", {"script_name": "hang.py"})
    agents.model.replies, agents.model.replies_given = [busy, run], 0
    began = time.monotonic()
    done = agents.finish("--max-time", f"{elapsed + 2}", resume=True)
    assert done.returncode == 3, done.stderr
    assert 2.5 < time.monotonic() - began < 100
    end = agents.events("end")[-1]
    assert end["reason"] == "time"
    assert elapsed + 1 < end["elapsed"] < elapsed + 60


def test_run_is_suspended_while_the_models_server_is_away(agents: Agents, say: Callable[..., str]) -> None:
    """Replay a local server that ends after the first step, is away for longer than the wait, and comes back."""
    look, answer = (
        say("Understand File", {"filename": "train.py", "query": "q"}),
        say("Final Answer", {"final_answer": "x"}),
    )

    def end(_prompt: str) -> ErrorResponse:
        return ErrorResponse(503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}')

    agents.model.replies, agents.model.serve = [say("List Files", {}), look], end
    done = agents.finish("--model-wait", "1s")
    assert done.returncode == 4
    assert "suspended: http" in done.stderr
    assert "has not answered for" in done.stderr
    assert not (agents.workspace / "submission.txt").exists()
    assert agents.events("end") == []
    assert json.loads((agents.run / "usage.json").read_text())["reason"] is None
    with FakeServer(lambda _request: "") as gone:
        address = gone.url
    again = agents.finish("--base-url", address, resume=True)  # with the same wait
    assert again.returncode == 4
    assert "has not answered for" in again.stderr
    agents.model.replies, agents.model.replies_given = [answer], 0
    agents.model.serve = lambda _prompt: "It is 0.1."
    assert agents.finish("--base-url", agents.server.url, resume=True).returncode == 0
    assert "It is 0.1." in agents.observations()[1]
    assert agents.submission == "x"
