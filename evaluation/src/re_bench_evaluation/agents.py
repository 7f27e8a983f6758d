"""Define kinds of agents: how they are checked, started, stopped and resumed, and what they report.

``command`` is built in. Packages add kinds through entry points in the group ``re_bench.agents``: the name is the
``kind`` in plans, the value a subclass of :class:`AgentKind`.
"""

# ruff: noqa: ARG002 - overrides need not use all parameters

from __future__ import annotations

import os
import shutil
import signal
import string
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from re_bench.data.jsonl import read_plain
from re_bench.errors import UsageError, did_you_mean
from re_bench.records import AGENT, WAITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from re_bench_evaluation.plan_tables import Agent, Budget, Model

GROUP = "re_bench.agents"
"""Entry point group of agent kinds."""
USAGE = "usage.json"
"""File in an agent's directory in which it reports its usage."""
TEMPORARY_FAILURE = 75
"""Exit status of an agent (``EX_TEMPFAIL`` of ``sysexits.h``) that requests a retry of the run."""
OPENAI_KEY = "OPENAI_API_KEY"
"""The variable from which clients of OpenAI's API read the key."""
PLACEHOLDERS = (
    "server", "task", "run", "plan", "model", "base_url", "seed", "hours", "dollars", "tokens", "steps"
)  # fmt: skip
"""Placeholders of a command."""

_MAX_USAGE = 1 << 16
_MAX_USED = 1 << 53
"""Larger reported amounts are invalid."""


class Usage(BaseModel):
    """The usage that an agent reports in ``usage.json``, which it may update; None is unknown."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    dollars: float | None = Field(default=None, ge=0, le=_MAX_USED)
    tokens: int | None = Field(default=None, ge=0, le=_MAX_USED)
    steps: int | None = Field(default=None, ge=0, le=_MAX_USED)
    reason: str | None = Field(default=None, max_length=200)
    """Why it ended; None while it runs."""

    @classmethod
    def of_run(cls, run: Path) -> Usage:
        """Read the file of a run; all values are None if it is missing or invalid."""
        try:
            return cls.model_validate_json(read_plain(run / AGENT / USAGE, _MAX_USAGE))
        except (OSError, ValidationError):
            return cls()


@dataclass(frozen=True)
class AgentExit:
    """How a try at a run ended."""

    kind: Literal["ended", "failed"]
    """``failed``: internal error."""
    reason: str


@dataclass(frozen=True)
class AgentSetup:
    """The settings of an agent and one of its models in the plan."""

    name: str
    """The agent's name in the plan."""
    agent: Agent
    model_key: str | None
    """The model's name in the plan; None without a model."""
    model: Model
    """An empty table without a model."""
    budget: Budget
    plan_directory: Path
    """The directory of the plan's file."""

    @property
    def model_name(self) -> str:
        """The name for the model's server."""
        return self.model.name or self.model_key or ""


@dataclass(frozen=True)
class AgentLaunch:
    """The parameters with which an agent starts."""

    setup: AgentSetup
    task_id: str
    seed: int
    run: Path
    """The run's directory."""
    address: str
    """The address of the run's server."""
    token: str
    """The API key of the run's server, passed as ``RE_BENCH_TOKEN``."""
    task_key: str | None
    """The variable with the key for the task's chat model; None if it has none or a stand-in."""

    @property
    def directory(self) -> Path:
        """The agent's working directory."""
        return self.run / AGENT

    def values(self) -> dict[str, str]:
        """Return the values of the placeholders; empty if unknown or unlimited."""
        setup, budget = self.setup, self.setup.budget
        values = (
            self.address, self.task_id, self.directory, setup.plan_directory, setup.model_name, setup.model.base_url,
            self.seed, f"{budget.hours:g}", budget.dollars, budget.tokens, budget.steps,
        )  # fmt: skip
        known = dict(zip(PLACEHOLDERS, values, strict=True))
        return {name: "" if value is None else str(value) for name, value in known.items()}


class AgentKind(ABC):
    """How agents of one kind are checked, started, stopped and resumed.

    By default an agent is stopped by SIGTERM, restarts from the beginning, and has ended when it exits.
    """

    needs_model: ClassVar[bool] = False
    """Whether it requires a model in the plan."""
    keeps_budget: ClassVar[bool] = False
    """Whether it stops by itself at every limit of the budget, and reports the maximum cost of a call in advance."""
    suspend_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """Sent when the evaluation stops."""

    def problems(self, agent: Agent) -> Iterator[str]:
        """Yield problems of an agent's table, each as ``key: problem``."""
        if agent.command is not None:
            yield f"command: not allowed for kind {agent.kind}"

    def missing(self, setup: AgentSetup) -> Iterator[str]:
        """Yield what prevents an agent from starting on this machine, each with ``agents.NAME``."""
        yield from ()

    @abstractmethod
    def argv(self, launch: AgentLaunch, *, resume: bool) -> list[str]:
        """Return the command line of an agent; ``resume`` requires :meth:`can_resume`."""

    def environment(self, launch: AgentLaunch) -> Mapping[str, str]:
        """Return additional environment variables."""
        return {}

    def can_resume(self, directory: Path, usage: Usage) -> bool:
        """Return whether a run can resume in the same session, from the agent's directory."""
        return False

    def asked_no_model(self, directory: Path) -> bool:
        """Return whether an agent that has ended never called a model, so it cost nothing."""
        return False

    def directory_of(self, command_line: Sequence[str]) -> str | None:
        """Return the agent's directory from its command line.

        Only needed for programs that hide their environment, which contains a variable with the run.
        """
        return None

    def ended(self, usage: Usage, status: int | None, last_line: str, *, opened: bool) -> AgentExit:
        """Return how an agent ended.

        Args:
            usage: its report.
            status: its exit status; None if unknown because the evaluation was killed.
            last_line: the last line of its output.
            opened: whether it opened a session.
        """
        if status == TEMPORARY_FAILURE:
            return AgentExit("failed", f"agent requested a retry (exit status 75): {last_line}")
        if not opened:
            return AgentExit("failed", f"agent exited with status {status} without opening a session: {last_line}")
        if status is None and usage.reason is None:
            return AgentExit("failed", "the evaluation was killed")
        reason = "finished" if status == 0 else f"exit status {status}: {last_line}"[:200]
        return AgentExit("ended", usage.reason or reason)


class CommandKind(AgentKind):
    """Any program, with placeholders in its command line."""

    def problems(self, agent: Agent) -> Iterator[str]:
        """Yield a missing command and unknown placeholders."""
        if agent.command is None:
            yield "command: required for kind command"
        if agent.options:
            yield "options: not allowed for kind command"
        for index, argument in enumerate(agent.command or ()):
            if problem := _placeholder_problem(argument):
                yield f"command[{index}]: {problem}"

    def missing(self, setup: AgentSetup) -> Iterator[str]:
        """Yield a missing program or script."""
        command = setup.agent.command or ()
        program, *arguments = (word.replace("{plan}", str(setup.plan_directory)) for word in command)
        if "{" not in program and shutil.which(program, path=setup.agent.environment.get("PATH")) is None:
            yield f"agents.{setup.name}.command: program not found: {program}"
        script = Path(arguments[0]) if arguments and command[1].startswith("{plan}/") else None
        if script is not None and "{" not in arguments[0] and not script.exists():
            yield f"agents.{setup.name}.command: file not found: {script}"

    def argv(self, launch: AgentLaunch, *, resume: bool) -> list[str]:
        """Return the command with placeholders replaced."""
        return [word.format(**launch.values()) for word in launch.setup.agent.command or ()]

    def environment(self, launch: AgentLaunch) -> Mapping[str, str]:
        """Return the variables that clients of OpenAI's API read."""
        model = launch.setup.model
        key = os.environ.get(model.key_variable) if model.key_variable else None
        return ({"OPENAI_BASE_URL": model.base_url} if model.base_url else {}) | ({OPENAI_KEY: key} if key else {})


def _placeholder_problem(argument: str) -> str | None:
    try:
        fields = list(string.Formatter().parse(argument))
    except ValueError as error:
        return f"{error}; double literal braces"
    for _text, name, form, conversion in fields:
        if name is not None and (name not in PLACEHOLDERS or form or conversion):
            known = f"known: {', '.join(PLACEHOLDERS)}{did_you_mean(name, PLACEHOLDERS)}"
            return f"unknown placeholder {{{name}}}; {known}; double literal braces"
    return None


@cache
def kind_named(name: str) -> AgentKind:
    """Return an agent kind; packages cannot replace ``command``.

    Raises:
        UsageError: if the kind is not installed or cannot be imported.
    """
    if name == "command":
        return CommandKind()
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        known = ", ".join(["command", *sorted(entries)])
        raise UsageError(f"unknown agent kind {name!r}; known: {known}; install the package that provides it")
    try:
        kind: AgentKind = entries[name].load()()
    except ImportError as error:
        raise UsageError(f"agent kind {name!r} cannot be imported: {error}") from None
    return kind


def agent_environment(kind: AgentKind, launch: AgentLaunch, keys: AbstractSet[str]) -> dict[str, str]:
    """Return an agent's environment: the current one without ``keys`` of other models, plus that of the run."""
    agent, model = launch.setup.agent, launch.setup.model
    own_key = model.key_variable if model.base_url else model.key_variable or OPENAI_KEY
    environment = environment_without(keys - {own_key, launch.task_key})
    environment |= {f"RE_BENCH_{name.upper()}": value for name, value in launch.values().items()}
    environment |= {"RE_BENCH_TOKEN": launch.token, "RE_BENCH_WAITS": str(launch.run / WAITS)}
    return environment | dict(kind.environment(launch)) | agent.environment


def environment_without(variables: AbstractSet[str]) -> dict[str, str]:
    """Return the current environment without some variables."""
    return {name: value for name, value in os.environ.items() if name not in variables}
