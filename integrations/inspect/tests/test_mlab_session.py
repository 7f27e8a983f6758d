"""Test the agent at a task of re-bench, with native tool calls of a real provider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlab_agent.trace import TRACE_FILE, read_trace

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from integrations.inspect.tests.conftest import Call, InspectProcess

FINAL: Call = ("final_answer", {"final_answer": "-1 it is"})


def write(name: str, content: str) -> Call:
    return "write_file", {"filename": name, "content": content}


def run(inspect: InspectProcess, script: list[Call], *options: str) -> EvalSample:
    inspect.script = script
    log = inspect.eval("quick", "--solver", "re_bench/mlab", *options)
    assert log.samples
    return log.samples[0]


@pytest.mark.slow
def test_scores_come_from_the_session(quick: InspectProcess) -> None:
    script: list[Call] = [
        ("list_files", {}),
        write("improve.sh", "(sleep 64.1 &)\npwd\necho -1 > answer.txt\n"),
        ("execute_script", {"filename": "improve.sh"}),
        ("score", {}),
        write("answer.txt", "nonsense\n"),
        ("score", {}),
        ("undo_edit_script", {"filename": "answer.txt"}),
        FINAL,
    ]
    sample = run(quick, script)
    assert sample.error is None
    scores = [event.score for event in sample.events if event.event == "score"]
    assert scores[0].value == 0.5
    assert scores[1].reason == "invalid"
    assert [attempt["status"] for attempt in sample.store["SessionStore:attempts"]] == ["valid", "invalid", "valid"]
    assert sample.scores
    assert sample.scores["reward"].value == 0.5
    assert sample.output.completion == "-1 it is"
    trace = read_trace(Path(sample.store["MlabStore:directory"], TRACE_FILE))
    observations = [event["text"] for event in trace if event["kind"] == "observation"]
    assert "answer.txt  2 bytes" in observations[0]
    assert "/workspace" in observations[2]
    assert "Attempt 1: valid" in observations[3]
    assert trace[-1]["final"]["final"]["reward"] == 0.5
    assert [event["reward"] for event in trace if event["kind"] == "reward"] == [0.5, 0.0, 0.5]
    assert len([event for event in sample.events if event.event == "model"]) == len(script)
    assert not quick.processes()


@pytest.mark.slow
def test_a_session_gives_its_final_score_after_its_hours(quick: InspectProcess) -> None:
    script: list[Call] = [
        write("slow.sh", "sleep 64.2\n"),
        ("execute_script", {"filename": "slow.sh"}),
        ("list_files", {}),
        FINAL,
    ]
    sample = run(quick, script, "-T", "hours=0.002", "--working-limit", "1000")
    assert (sample.error, sample.limit) == (None, None)
    assert sample.scores
    assert sample.scores["reward"].value == 0.0
    trace = read_trace(Path(sample.store["MlabStore:directory"], TRACE_FILE))
    observations = [event["text"] for event in trace if event["kind"] == "observation"]
    assert "hours of this session are over" in observations[2]
    assert trace[-1]["reason"] == "final answer"
    assert trace[-1]["final"]["final"]["reward"] == 0.0
    assert not quick.processes()
