"""Waits of whole runs for a models' server that refuses: the limit on time leaves them out, and files have them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from mlab_agent.fake_server import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents.mlab.tests.conftest import Agents


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_limit_on_time_leaves_out_what_a_server_makes_wait(agents: Agents, say: Callable[..., str]) -> None:
    busy = ErrorResponse(429, "slow down", headers={"Retry-After": "9"})
    agents.model.replies = [busy, say("List Files", {"dir_path": "."}), say("Final Answer", {"final_answer": "ok"})]
    waits = agents.top / "waits.jsonl"
    began = time.monotonic()
    done = agents.finish("--max-time", "8", RE_BENCH_WAITS=str(waits))  # less than it waits
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began > 9
    assert lines(waits) == lines(agents.run / "waits.jsonl")
    assert sum(wait["ended"] - wait["began"] for wait in lines(waits)) >= 9
    assert [event["reason"] for event in agents.events("wait")] == [wait["reason"] for wait in lines(waits)]
    assert agents.events("end")[0]["elapsed"] < 8


def test_a_limit_on_time_holds_after_a_wait_and_in_a_run_that_is_resumed(
    agents: Agents, say: Callable[..., str]
) -> None:
    busy = ErrorResponse(429, headers={"Retry-After": "2"})
    script = say("Write File", {"filename": "hang.py", "content": "import time; time.sleep(60)"})
    agents.model.replies = [busy, script, ErrorResponse(429, headers={"Retry-After": "30"})]
    agents.kill_when(lambda: len(agents.events("retry")) == 2, "--max-time", "1h")
    elapsed = agents.events()[-1]["elapsed"]
    assert elapsed < 10
    run = say("Execute Script", {"script_name": "hang.py"})
    agents.model.replies, agents.model.replies_given = [busy, run], 0
    began = time.monotonic()
    done = agents.finish("--max-time", f"{elapsed + 4}", resume=True)
    assert done.returncode == 3, done.stderr
    assert 5.5 < time.monotonic() - began < 40
    end = agents.events("end")[-1]
    assert end["reason"] == "time"
    assert end["elapsed"] == pytest.approx(elapsed + 4, abs=2)


def test_a_file_for_waits_that_cannot_be_written_is_named(agents: Agents) -> None:
    done = agents.finish(RE_BENCH_WAITS=str(agents.top / "no" / "waits"))
    assert done.returncode == 2
    assert "RE_BENCH_WAITS=" in done.stderr
    assert "it cannot be written: No such file or directory" in done.stderr
