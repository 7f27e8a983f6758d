"""The MLAgentBench research agent as an agent of Inspect."""

from __future__ import annotations

from typing import Literal

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.model import CachePolicy, Model  # noqa: TC002 - Inspect reads the annotations
from pydantic import ValidationError

from re_bench_inspect.mlab.run import Options, Run
from re_bench_inspect.mlab.workspace import Answer, Answered
from re_bench_inspect.tasks import PREFIX, without_package

__all__ = ["Answer", "Answered", "mlab"]

_DESCRIPTION = "The research agent of MLAgentBench: it looks at files, edits and runs scripts, and submits an answer."


@agent(name=f"{PREFIX}mlab", description=_DESCRIPTION)
@without_package
def mlab(
    *,
    fast_model: str | Model | None = None,
    edit_model: str | Model | None = None,
    tools: Literal["auto", "native", "text"] = "auto",
    cache: bool | CachePolicy = False,
    max_steps: int | None = 50,
    script_seconds: float = 3600.0,
    max_malformed: int = 10,
    repeat_remark: int = 3,
    recent_steps: int = 8,
    context_tokens: int | None = None,
    max_output_tokens: int | None = None,
    sandbox: str | None = None,
    directory: str | None = None,
    python: str | None = None,
    read_only: list[str] | str = "",
    score: bool | None = None,
    answer: Answer | None = None,
    trace_directory: str | None = None,
) -> Agent:
    """Return the research agent of MLAgentBench, for any task with a sandbox.

    Args:
        fast_model: for questions about files and summaries: a role, or a model's name; None for the role ``fast`` if it
            is given, else the model of the steps.
        edit_model: for edits; None for the role ``edit`` if it is given, else the fast model.
        tools: ``text`` for actions as text, else native tool calls where the provider has them.
        cache: of calls to models, as Inspect's ``generate`` has it.
        max_steps: then the agent is asked for its final answer; None for no limit but those of the sample.
        script_seconds: the longest that a script may run.
        max_malformed: so many malformed replies in a row end the run.
        repeat_remark: the model is told that it did the same so many times in a row; 0 for never.
        recent_steps: so many steps at least are shown word for word.
        context_tokens: what the model reads and writes together; None for what Inspect knows of it.
        max_output_tokens: of a reply; None for Inspect's setting.
        sandbox: its name; None for the default one.
        directory: the workspace, in the sandbox; None for the sample's working directory.
        python: the interpreter of Python scripts; None for the first one of the sandbox's path.
        read_only: patterns of files that must stay as they are, a list or with commas between them.
        score: whether the agent may ask for scores; None for tasks of re-bench alone, since the scorers of others may
            tell the model the right answer.
        answer: gives scores; None for the session of a task of re-bench, or the scorers of any other task.
        trace_directory: gets a directory with the trace of each run; None for one next to the log.

    Raises:
        PrerequisiteError: if an option is wrong.
    """
    try:
        options = Options(**locals())
    except ValidationError as error:
        problems = "; ".join(f"{item['loc'][0]}={item['input']}: {item['msg']}" for item in error.errors())
        raise PrerequisiteError(f"{PREFIX}mlab: {problems}") from None

    async def execute(state: AgentState) -> AgentState:
        await Run(options, state).work()
        return state

    return execute
