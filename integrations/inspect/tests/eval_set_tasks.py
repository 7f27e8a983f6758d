"""All tasks with two agents, each with a model that scores what it finds and ends: a task file for ``inspect``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inspect_ai import Task, task, task_with
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from re_bench_inspect.mlab import mlab
from re_bench_inspect.registry import TASKS
from re_bench_inspect.tasks import tool_agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspect_ai.agent import Agent
    from inspect_ai.model import ChatMessage, Model

AGENTS: dict[str, Callable[[], Agent]] = {"react": tool_agent, "mlab": lambda: mlab(tools="text")}
CALLS: list[tuple[str, dict[str, Any]]] = [("answer", {}), ("answer", {"get_final_score": True})]
ACTIONS: list[tuple[str, dict[str, Any]]] = [
    ("List Files", {"directory": "."}),
    ("Score", {}),
    ("Final Answer", {"final_answer": "done"}),
]


def reply(agent: str, messages: list[ChatMessage]) -> ModelOutput:
    """Return the next step of a model; the conversation says how far it is."""
    done = sum(message.role == "assistant" for message in messages)
    if agent == "react":
        name, arguments = CALLS[min(done, len(CALLS) - 1)]
        output = ModelOutput.for_tool_call("mockllm/model", name, arguments)
    else:
        name, arguments = ACTIONS[min(done, len(ACTIONS) - 1)]
        text = (
            "Reflection: none\nResearch Plan and Status: score it\nFact Check: nothing new\nThought: go on\n"
            f"Action: {name}\nAction Input: {json.dumps(arguments)}"
        )
        output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return output


def model(agent: str) -> Model:
    """Return the scripted model of an agent."""
    return get_model("mockllm/model", memoize=False, custom_outputs=lambda messages, *_others: reply(agent, messages))


def make(name: str, agent: str) -> Task:
    """Return one of our tasks with an agent and its model."""
    return task_with(TASKS[name](profile="cpu"), solver=AGENTS[agent](), model=model(agent), name=f"{name}_{agent}")


# Inspect finds the tasks of a file by reading it.


@task
def fix_embedding_react() -> Task:
    return make("fix_embedding", "react")


@task
def fix_embedding_mlab() -> Task:
    return make("fix_embedding", "mlab")


@task
def restricted_mlm_react() -> Task:
    return make("restricted_mlm", "react")


@task
def restricted_mlm_mlab() -> Task:
    return make("restricted_mlm", "mlab")


@task
def rust_codecontests_react() -> Task:
    return make("rust_codecontests", "react")


@task
def rust_codecontests_mlab() -> Task:
    return make("rust_codecontests", "mlab")


@task
def small_scaling_law_react() -> Task:
    return make("small_scaling_law", "react")


@task
def small_scaling_law_mlab() -> Task:
    return make("small_scaling_law", "mlab")


@task
def triton_cumsum_react() -> Task:
    return make("triton_cumsum", "react")


@task
def triton_cumsum_mlab() -> Task:
    return make("triton_cumsum", "mlab")
