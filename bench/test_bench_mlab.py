"""Benchmark the MLAB agent's own time per step, without model and scripts: at most 50 ms after 500 steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mlab_agent.memory import MemoryLimits
from mlab_agent.models import Caps, Reply
from mlab_agent.run import Run
from mlab_agent.settings import ModelOptions, RunSettings
from mlab_agent.state import RunState
from mlab_agent.trace import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

    from mlab_agent.agent import Agent

HISTORY, FILES = 500, 200
GOAL_S = 0.05
GROUP = f"a step of the MLAB agent at a history of {HISTORY} steps, {FILES} files"
PLAN = "1. Baseline, done: loss 2.31. 2. Learning rates, **0.3 gives 2.05**. 3. Longer training. " * 8


def reply(action: str, given: dict[str, Any]) -> str:
    return (
        f"Reflection: it ran, with val_loss 2.05\nResearch Plan and Status: {PLAN}\nFact Check: confirmed\n"
        f"Thought: try the next learning rate\nAction: {action}\nAction Input: {json.dumps(given)}"
    )


def instant(agent: Agent, text: Callable[[], str]) -> None:
    """Make the model of ``agent`` reply immediately with ``text()``, emitting the same events as a real call."""

    def complete(_messages: Any, *, purpose: str, **_more: Any) -> Reply:
        agent.emit("call", purpose=purpose, model="m", prompt_tokens=5000, dollars=0.0)
        said = text() if purpose == "step" else "\n".join(f"Step {number}: tried a rate" for number in range(600))
        made = Reply(said, None, truncated=False, prompt_tokens=5000, completion_tokens=400, dollars=0.0)
        agent.emit("reply", purpose=purpose, **made.record(), seconds=0.0)
        return made

    agent.clients.model.complete = complete  # type: ignore[assignment, method-assign]  # excludes the model from the timing


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Yield a run with a history of ``HISTORY`` steps, in a workspace with ``FILES`` files."""
    workspace = tmp_path / "workspace"
    for number in range(FILES):
        path = workspace / f"part{number % 10}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"x = {number}\n" * 200)
    options = ModelOptions(name="m")
    at = "http://127.0.0.1:9/v1"  # never contacted
    settings = RunSettings(workdir=str(workspace), base_url=at, model=options, tools="text", max_steps=None)
    with Run(settings, tmp_path / "run", task="Lower the loss. " * 200) as made:
        written = {"filename": "notes.txt", "content": "a note on this step\n" * 20}
        instant(made.agent, lambda: reply("Append File", written))
        made.agent.prepare()
        for _ in range(HISTORY):
            made.agent.execute(made.agent.get_response())
        yield made


def step(run: Run) -> None:
    run.agent.execute(run.agent.get_response())


@pytest.mark.benchmark(group=GROUP)
def test_a_step_that_writes(benchmark: BenchmarkFixture, run: Run) -> None:
    benchmark.pedantic(step, (run,), rounds=100)  # type: ignore[no-untyped-call]
    assert run.state.steps >= HISTORY + 100
    if benchmark.stats is not None:
        assert benchmark.stats["median"] < GOAL_S


@pytest.mark.benchmark(group=GROUP)
def test_a_step_that_reads(benchmark: BenchmarkFixture, run: Run) -> None:
    instant(run.agent, lambda: reply("Read File", {"filename": "part1/file1.py"}))
    benchmark.pedantic(step, (run,), rounds=100)  # type: ignore[no-untyped-call]


@pytest.mark.benchmark(group=GROUP)
def test_a_step_that_runs_an_empty_script(benchmark: BenchmarkFixture, run: Run) -> None:
    """Run a shell script that does nothing; the time includes starting the script."""
    instant(run.agent, lambda: reply("Execute Script", {"filename": "nothing.sh"}))
    run.agent.workspace.write("nothing.sh", "exit 0\n")
    benchmark.pedantic(step, (run,), rounds=20)  # type: ignore[no-untyped-call]


@pytest.mark.benchmark(group="the trace of the MLAB agent")
def test_an_event(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with Trace(tmp_path / "trace.jsonl", ["sk-0123456789"]) as trace:
        benchmark(lambda: trace.add("observation", text="x" * 5000, snapshot=None))


@pytest.mark.benchmark(group="the trace of the MLAB agent")
def test_resuming(benchmark: BenchmarkFixture, run: Run) -> None:
    """Read the trace of a long run and restore the state at its end."""
    state = benchmark(lambda: RunState.resumed(MemoryLimits(), Caps(), read_trace(run.trace.path)))
    assert state.steps == run.state.steps
