"""The ``inspect`` command runs every task from the starting score to the reference's: ``nox -s tools -- inspect``."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_server import Completion, FakeServer
from inspect_ai.log import list_eval_logs, read_eval_log

from re_bench.task.discovery import find_tasks
from re_bench.task.workspace import recipe_of, solution_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspect_ai.log import EvalSample

    from re_bench.task.discovery import Task

TASKS = find_tasks()
INSPECT = Path(sys.executable).with_name("inspect")
_CHUNK = 600_000
"""Bytes of a file in one command, which may have a MiB."""

Call = tuple[str, dict[str, Any]]


def calls(task: Task) -> Iterator[Call]:
    """Yield the calls of a model that scores what it finds, hands in the reference, and ends."""
    yield "answer", {}
    for path, name in solution_files(task, "reference", "cpu"):
        data = path.read_bytes()
        for start in range(0, max(len(data), 1), _CHUNK):
            text = base64.b64encode(data[start : start + _CHUNK]).decode()
            yield "bash", {"command": f"base64 -d {'>>' if start else '>'} '{name}' <<'END'\n{text}\nEND"}
    if recipe := recipe_of(task, "reference"):
        yield "bash", {"command": f"RE_BENCH_SEED=0 {' '.join(recipe.command)}", "timeout": recipe.time_limit_s}
    yield "answer", {"get_final_score": True}


def reply(request: dict[str, Any]) -> Completion:
    """Return the next call; the model's name is the task's, and the conversation says how far it is."""
    script = list(calls(TASKS[str(request["model"])]))
    done = sum(message["role"] == "assistant" for message in request["messages"])
    name, arguments = script[min(done, len(script) - 1)]
    return Completion(call=(name, json.dumps(arguments)))


def run(task: str, url: str, logs: Path, *options: str) -> EvalSample:
    """Run a task to its end with the scripted model, and return what the log has of its sample."""
    environment = os.environ | {"SCRIPTED_API_KEY": "none", "SCRIPTED_BASE_URL": url}
    command = [str(INSPECT), "eval", f"re_bench/{task}", "--model", f"openai-api/scripted/{task}", "-T", "profile=cpu"]
    command += ["--log-dir", str(logs), "--display", "plain", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = list_eval_logs(str(logs))
    samples = read_eval_log(log).samples
    assert samples
    assert samples[0].error is None, samples[0].error.message
    return samples[0]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(TASKS))
def test_from_the_starting_score_to_the_reference(name: str, tmp_path: Path) -> None:
    with FakeServer(reply) as server:
        sample = run(name, server.url, tmp_path)
    tolerance = TASKS[name].manifest.profiles["cpu"].tolerance
    first, final = (event.score for event in sample.events if event.event == "score")
    print(f"{name}: start {first.value}, reference {final.value}, {sample.total_time:.0f} s", flush=True)
    assert first.metadata is not None
    assert first.metadata["status"] == "valid"
    assert abs(first.as_float()) <= tolerance.baseline
    assert abs(final.as_float() - 1) <= tolerance.reference
    assert [attempt["status"] for attempt in sample.store["SessionStore:attempts"]] == ["valid", "valid"]
