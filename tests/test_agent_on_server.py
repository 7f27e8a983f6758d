"""Test the MLAB agent in sessions of the ORS server: the reward rises from 0 to the better submission's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from fake_server import FakeServer

from mlab_agent.trace import read_trace

pytestmark = pytest.mark.integration

TASKS = Path(__file__).resolve().parents[1] / "tasks"
BETTER = {
    "small_scaling_law": ("answer.json", '{"n_embd": 64, "max_iters": 8400, "loss_prediction": 1.7}'),
    "triton_cumsum": ("solution.py", (TASKS / "triton_cumsum" / "reference" / "solution.py").read_text()),
}
"""By task: a file of the submission, and an improvement."""
KEY = "sk-test-of-the-model"


def reply(action: str, given: dict[str, str]) -> str:
    return (
        "Reflection: none\nResearch Plan and Status: score, improve, score again\nFact Check: nothing new\n"
        f"Thought: go on\nAction: {action}\nAction Input: {json.dumps(given)}"
    )


@pytest.mark.parametrize("task", ["small_scaling_law", pytest.param("triton_cumsum", marks=pytest.mark.slow)])
def test_the_reward_rises(task: str, ors_url: str, ors_state: Path, tmp_path: Path) -> None:
    file, text = BETTER[task]
    replies = [
        reply("List Files", {"directory": "."}),
        reply("Score", {}),
        reply("Write File", {"filename": file, "content": text}),
        reply("Final Answer", {"final_answer": "it is better"}),
    ]
    count = iter(replies)
    run = tmp_path / "run"
    with FakeServer(lambda _request: next(count)) as model:
        command = [sys.executable, "-m", "mlab_agent", "--ors", ors_url, "--task", f"ai_rd_{task}", "--run", str(run)]
        options = ["--model", "scripted", "--base-url", model.url, "--tools", "text", "--max-time", "10m"]
        done = subprocess.run(
            [*command, *options], env={**os.environ, "OPENAI_API_KEY": KEY}, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    events = read_trace(run / "trace.jsonl")
    rewards = [event["reward"] for event in events if event["kind"] == "reward"]
    assert len(rewards) == 2
    assert rewards[0] == pytest.approx(0, abs=0.05)
    assert rewards[1] > 0.4
    assert events[-1]["final"]["attempt"] == 2
    assert events[-1]["kind"] == "end"
    assert events[-1]["reason"] == "final answer"
    for path in [*run.rglob("*"), *ors_state.rglob("*")]:
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
