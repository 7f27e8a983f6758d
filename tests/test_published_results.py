"""Test publishing a run of a real agent: bundle, verification and trajectories."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import FakeServer

from re_bench.attempts.log import AttemptLog, encoded
from re_bench.records import AGENT, RUNS, SERVER, EvaluationRecord, RunRecord, TaskRecord
from re_bench.task.discovery import find_task
from re_bench_evaluation.pack import pack
from re_bench_evaluation.plan import Plan
from re_bench_evaluation.transcripts import write_trajectories
from re_bench_evaluation.verify import Verification, verify

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

TASK = "small_scaling_law"
RUN = f"mlab.scripted.{TASK}.0"
BETTER = '{"n_embd": 64, "max_iters": 8400, "loss_prediction": 1.7}'


def reply(action: str, arguments: dict[str, str]) -> str:
    return (
        "Reflection: none\nResearch Plan and Status: score, improve, score again\nFact Check: nothing new\n"
        f"Thought: go on\nAction: {action}\nAction Input: {json.dumps(arguments)}"
    )


@pytest.fixture(scope="module")
def evaluation(ors_url: str, ors_state: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an evaluation with one run of three attempts, one of them invalid."""
    top = tmp_path_factory.mktemp("evaluation")
    run = top / RUNS / RUN
    replies = iter([
        reply("Score", {}),
        reply("Write File", {"filename": "answer.json", "content": "no JSON"}),
        reply("Score", {}),
        reply("Write File", {"filename": "answer.json", "content": BETTER}),
        reply("Final Answer", {"final_answer": "it is better"}),
    ])  # fmt: skip
    before = set((ors_state / "sessions").iterdir())
    with FakeServer(lambda _request: next(replies)) as model:
        command = [sys.executable, "-m", "mlab_agent", "--ors", ors_url, "--task", f"ai_rd_{TASK}"]
        command += ["--run", str(run / AGENT), "--model", "scripted", "--base-url", model.url, "--tools", "text"]
        environment = {**os.environ, "OPENAI_API_KEY": "sk-test-of-the-model"}
        subprocess.run([*command, "--max-time", "10m"], env=environment, check=True, capture_output=True)
    (session,) = set((ors_state / "sessions").iterdir()) - before
    shutil.copytree(session, run / SERVER / "sessions" / session.name)
    write_records(top, session.name)
    return top


def write_records(top: Path, session: str) -> None:
    manifest = find_task(TASK).manifest
    anchors = manifest.anchors("cpu")
    assert anchors is not None
    task = TaskRecord(
        name=TASK, id=manifest.id, title=manifest.title, version=manifest.version, profile="cpu", unit=manifest.unit,
        direction=manifest.direction, aggregation=manifest.aggregation, anchors=anchors.model_dump(mode="json"),
    )  # fmt: skip
    agents, models = {"mlab": {"kind": "mlab"}}, {"scripted": {"price": [1.0, 2.0]}}
    plan = Plan.model_validate({"tasks": [TASK], "runs": 1, "agents": agents, "models": models})
    EvaluationRecord(name="one", created="", plan=plan.record(), tasks=(task,), versions={}, hardware="").save(top)
    log = AttemptLog(top / RUNS / RUN / SERVER / "sessions" / session / "attempts.jsonl")
    final = log.final(manifest.aggregation, (anchors.starting, anchors.reference))
    RunRecord(
        run=RUN, agent="mlab", model="scripted", task=TASK, task_id=manifest.id, profile="cpu", seed=0, state="ended",
        session=session, attempts=final.attempts, valid=final.valid, raw=final.raw, reward=final.reward,
    ).save(top / RUNS / RUN)  # fmt: skip


def outcomes(result: Verification) -> list[tuple[int, str]]:
    return sorted((entry.attempt, entry.outcome) for entry in result.rescored)


def test_a_bundle_is_verified_by_scoring_again(evaluation: Path, tmp_path: Path) -> None:
    result = verify(pack(evaluation, tmp_path / "bundle").path, sample=9)
    assert result.problems == ()
    assert outcomes(result) == [(1, "agrees"), (2, "agrees"), (3, "agrees")]
    assert (result.verified, result.compared, result.unchecked) == (True, 3, ())
    assert result.rescored[0].attempt == 3  # the one that decides the score


def test_a_consistently_forged_score_is_not_verified(evaluation: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(evaluation, forged)
    log = next(forged.rglob("attempts.jsonl"))
    attempts = AttemptLog(log).read().attempts
    reference = EvaluationRecord.load(forged).tasks[0].anchors
    assert reference is not None
    perfect: dict[str, Any] = {"raw": reference["reference"], "reward": 1.0, "status": "valid"}
    log.write_bytes(b"".join(encoded(replace(entry, **perfect)) + b"\n" for entry in attempts))
    log.with_name("transcript.jsonl").unlink()
    write_records(forged, log.parent.name)
    result = verify(pack(forged, tmp_path / "bundle").path, sample=2)
    assert all(", now " in problem for problem in result.problems), result.problems
    assert [outcome for _attempt, outcome in outcomes(result)] == ["differs"] * 2


def test_runs_with_problems_are_not_scored_again(evaluation: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(evaluation, elsewhere)
    log = next(elsewhere.rglob("attempts.jsonl"))
    attempts = AttemptLog(log).read().attempts
    log.write_bytes(b"".join(encoded(replace(entry, profile="gpu")) + b"\n" for entry in attempts))
    result = verify(pack(elsewhere, tmp_path / "bundle").path, sample=1)
    assert "another task or profile" in str(result.problems)
    assert result.rescored == ()


def test_the_trajectories_of_a_real_run(evaluation: Path, tmp_path: Path) -> None:
    write_trajectories(evaluation, tmp_path)
    agent, server = (
        json.loads((tmp_path / RUN / name).read_text()) for name in ("trajectory.json", "server.trajectory.json")
    )
    called = [step["tool_calls"][0]["function_name"] for step in agent["steps"] if step.get("tool_calls")]
    assert called == ["Score", "Write File", "Score", "Write File", "Final Answer"]
    assert all(step["metrics"]["prompt_tokens"] > 0 for step in agent["steps"] if step["source"] == "agent")
    assert agent["agent"]["model_name"] == "scripted"
    for document in (agent, server):
        events = [
            (step["extra"]["event"], step["extra"].get("status"))
            for step in document["steps"]
            if "event" in step.get("extra", {})
        ]
        expected = [("attempt", "valid"), ("attempt", "invalid"), ("attempt", "valid"), ("end", None)]
        assert [event for event in events if event[0] in ("attempt", "end")][:4] == expected
    order = [step["extra"].get("event") for step in agent["steps"] if "event" in step.get("extra", {})]
    assert order[-1] == "end"
    answers = [step for step in server["steps"] if step.get("tool_calls", [{}])[0].get("function_name") == "answer"]
    assert len(answers) == 3
    if importlib.util.find_spec("harbor") is not None:  # common/tests/test_transcripts.py says aloud that it is not
        models = importlib.import_module("harbor.models.trajectories")
        for document in (agent, server):
            assert models.Trajectory.model_validate(document).to_json_dict() == document
