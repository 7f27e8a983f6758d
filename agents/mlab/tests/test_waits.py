"""Waits for the models' server in whole runs."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import ErrorResponse

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
