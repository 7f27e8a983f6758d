"""How the agents of a plan are started, and what they report of themselves."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from re_bench.data.jsonl import read_plain
from re_bench.errors import UsageError
from re_bench.records import AGENT, TRACE, WAITS
from re_bench_evaluation.plan import Model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from re_bench.records import RunRecord, TaskRecord
    from re_bench_evaluation.plan import Plan

USAGE = "usage.json"
"""In an agent's directory, by the agent: what it has used."""
TEMPORARY_FAILURE = 75
"""The exit status (``EX_TEMPFAIL`` of ``sysexits.h``) by which a command says that it could not work, for no fault of
its own: the run is tried again."""

_KEY = "OPENAI_API_KEY"
_MAX_USAGE = 1 << 16
_MOST_USED = 1 << 53
"""More of anything is no report that can be added up."""
_REASONS = {"final answer": "finished", "cost": "dollars"}


class Usage(BaseModel):
    """What an agent reports in ``usage.json``, which it may write again and again; None is not known."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    dollars: float | None = Field(default=None, ge=0, le=_MOST_USED)
    tokens: int | None = Field(default=None, ge=0, le=_MOST_USED)
    steps: int | None = Field(default=None, ge=0, le=_MOST_USED)
    reason: str | None = Field(default=None, max_length=200)
    """Why it has ended; None while it works."""

    @classmethod
    def of_run(cls, run: Path) -> Usage:
        """Read the file of a run; nothing is known where there is none, or none that is of use."""
        try:
            return cls.model_validate_json(read_plain(run / AGENT / USAGE, _MAX_USAGE))
        except (OSError, ValidationError):
            return cls()


@dataclass(frozen=True)
class AgentExit:
    """How a try at a run ended."""

    kind: Literal["ended", "failed"]
    """``failed``: for an internal reason."""
    reason: str


@dataclass(frozen=True)
class AgentLaunch:
    """What an agent is started with."""

    plan: Plan
    plan_directory: Path
    """Of the plan's file, for commands that lie beside it."""
    record: RunRecord
    task: TaskRecord
    run: Path
    """The run's directory."""
    address: str
    """The server's."""
    token: str

    @property
    def model(self) -> Model:
        """The run's model; one without anything if it has none."""
        return self.plan.models[self.record.model] if self.record.model else Model()

    @property
    def model_name(self) -> str:
        """The name that the model's server knows."""
        return self.model.name or self.record.model or ""


def is_mlab(plan: Plan, record: RunRecord) -> bool:
    """Tell whether a run's agent is mlab-agent, whose runs can be resumed."""
    return plan.agents[record.agent].kind == "mlab"


def mlab_has_begun(run: Path) -> bool:
    """Tell whether there is a run of mlab-agent to go on with."""
    trace = run / AGENT / TRACE
    return trace.is_file() and trace.stat().st_size > 0


def mlab_argv() -> list[str]:
    """Return the words of a command line that mean mlab-agent, which need not be installed where we are.

    Raises:
        UsageError: if it is nowhere.
    """
    if importlib.util.find_spec("mlab_agent") is not None:
        return [sys.executable, "-m", "mlab_agent"]
    program = shutil.which("mlab-agent")
    if program is None:
        raise UsageError("mlab-agent is not installed; run: pip install -c constraints.txt -e agents/mlab")
    return [program]


def agent_argv(start: AgentLaunch, *, resume: bool) -> list[str]:
    """Return the command line of an agent.

    Raises:
        UsageError: if its program is not installed.
    """
    agent = start.plan.agents[start.record.agent]
    if agent.kind == "command":
        values = {name: str(value) for name, value in _values(start).items()}
        return [word.format(**values) for word in agent.command or ()]
    directory = str(start.run / AGENT)
    if resume:
        return [*mlab_argv(), "resume", directory, "--ors", start.address, *_mlab_access(start.model)]
    words = [*mlab_argv(), "--ors", start.address, "--task", start.record.task_id, "--run", directory]
    words += ["--token-variable", "RE_BENCH_TOKEN", "--model", start.model_name, "--seed", str(start.record.seed)]
    words += ["--secret", f"openai_api_key={_task_key(start)}"] if _task_key(start) else []
    return [*words, *_mlab_settings(start.plan, start.model), *agent.options]


def _task_key(start: AgentLaunch) -> str | None:
    """Return the variable with the key for the task's own chat model, if it asks a real one."""
    return start.plan.server.key_variable if start.task.model and not start.task.stand_in else None


def _mlab_access(model: Model) -> list[str]:
    return _words({"--base-url": model.base_url, "--key-variable": model.key_variable})


def _mlab_settings(plan: Plan, model: Model) -> list[str]:
    """Return the options of mlab-agent that follow from the plan alone."""
    budget = plan.budget
    settings = {
        "--price": ",".join(map(str, model.price)) if model.price else None,
        "--context-tokens": model.context_tokens,
        "--max-time": f"{budget.hours * 3600:g}",
        "--max-cost": budget.dollars,
        "--max-tokens": budget.tokens,
        "--max-steps": budget.steps or 1_000_000,
    }
    return [*_mlab_access(model), *_words(settings)]


def _words(options: Mapping[str, object]) -> list[str]:
    return [word for option, value in options.items() if value is not None for word in (option, str(value))]


def mlab_check_argv(plan: Plan, agent: str, model: str) -> list[str]:
    """Return a command that checks an agent's options, the key and the price of a model, and starts nothing."""
    entry = plan.models[model]
    words = [*mlab_argv(), "--check", "--ors", "http://127.0.0.1:1", "--task", "none", "--model", entry.name or model]
    return [*words, *_mlab_settings(plan, entry), *plan.agents[agent].options]


def _values(start: AgentLaunch) -> dict[str, object]:
    """Return the values of a command's placeholders; what is not known or not bounded is empty."""
    budget = start.plan.budget
    values = {
        "server": start.address,
        "task": start.record.task_id,
        "run": start.run / AGENT,
        "plan": start.plan_directory,
        "model": start.model_name,
        "base_url": start.model.base_url,
        "seed": start.record.seed,
        "hours": f"{budget.hours:g}",
        "dollars": budget.dollars,
        "tokens": budget.tokens,
        "steps": budget.steps,
    }
    return {name: "" if value is None else value for name, value in values.items()}


def agent_environment(start: AgentLaunch) -> dict[str, str]:
    """Return the environment variables of an agent: ours without keys of other models, and those of the run."""
    agent, model = start.plan.agents[start.record.agent], start.model
    own_key = model.key_variable if model.base_url else model.key_variable or _KEY
    environment = environment_without_keys(start.plan, own_key, _task_key(start))
    environment |= {f"RE_BENCH_{name.upper()}": str(value) for name, value in _values(start).items()}
    environment |= {"RE_BENCH_TOKEN": start.token, "RE_BENCH_WAITS": str(start.run / WAITS)}
    if agent.kind == "command" and start.record.model:
        # What clients of OpenAI's API read by themselves.
        environment |= {"OPENAI_BASE_URL": model.base_url} if model.base_url else {}
        key = os.environ.get(model.key_variable) if model.key_variable else None
        environment |= {_KEY: key} if key else {}
    return environment | agent.environment


def environment_without_keys(plan: Plan, *kept: str | None) -> dict[str, str]:
    """Return our environment variables without those that have keys of the plan's models, but for some."""
    keys = {_KEY, plan.server.key_variable, *(model.key_variable for model in plan.models.values())} - {*kept}
    return {name: value for name, value in os.environ.items() if name not in keys}


def mlab_end(usage: Usage, status: int, last_line: str) -> AgentExit:
    """Return how a run of mlab-agent ended, by what it reports and its exit status.

    Only it can say whether it had to give up because a server did: what its model did is no internal failure.
    """
    if usage.reason is None:
        return AgentExit("failed", f"mlab-agent ended with exit status {status}: {last_line}")
    if usage.reason in {"workspace", "model"}:
        server = "its server" if usage.reason == "workspace" else "the model's server"
        return AgentExit("failed", f"mlab-agent could not go on with {server}: {last_line}")
    return AgentExit("ended", _REASONS.get(usage.reason, usage.reason))


def command_end(usage: Usage, status: int, last_line: str, *, opened: bool) -> AgentExit:
    """Return how a command ended, by its exit status; one that has ``opened`` no session was never at the task."""
    if status == TEMPORARY_FAILURE:
        return AgentExit("failed", f"the agent says that it could not work: {last_line}")
    if not opened:
        return AgentExit("failed", f"the agent ended with exit status {status} and has opened no session: {last_line}")
    reason = "finished" if status == 0 else f"exit status {status}: {last_line}"[:200]
    return AgentExit("ended", usage.reason or reason)
