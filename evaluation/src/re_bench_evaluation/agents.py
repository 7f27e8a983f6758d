"""The agents of a plan: their kinds, how each is started and stopped, and what it reports.

``command`` is built in. Other distributions add a kind by an entry point in the group ``re_bench.agents``, which names
a subclass of :class:`AgentKind`; the entry point's name is the ``kind`` in plans.
"""

# ruff: noqa: ARG002 - defaults and overrides need not use all that a kind is given

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
from re_bench.errors import UsageError
from re_bench.records import AGENT, WAITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from re_bench_evaluation.plan_tables import Agent, Budget, Model

GROUP = "re_bench.agents"
"""The entry points whose values are kinds of agents."""
USAGE = "usage.json"
"""In an agent's directory, by the agent: what it has used."""
TEMPORARY_FAILURE = 75
"""The exit status (``EX_TEMPFAIL`` of ``sysexits.h``) of an agent that could not work for no fault of its own: the run
is tried again."""
OPENAI_KEY = "OPENAI_API_KEY"
"""The variable in which clients of OpenAI's API look for the key."""
PLACEHOLDERS = (
    "server", "task", "run", "plan", "model", "base_url", "seed", "hours", "dollars", "tokens", "steps"
)  # fmt: skip
"""What a command may name in braces."""

_MAX_USAGE = 1 << 16
_MOST_USED = 1 << 53
"""More of anything is no report that can be added up."""


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
        """Read the file of a run; nothing is known if it is missing or unusable."""
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
class AgentSetup:
    """What a plan says of an agent with one of its models."""

    name: str
    """The agent's name in the plan."""
    agent: Agent
    model_key: str | None
    """The model's name in the plan; None for an agent that asks no model."""
    model: Model
    """An empty table for an agent that asks no model."""
    budget: Budget
    plan_directory: Path
    """The directory of the plan's file."""

    @property
    def model_name(self) -> str:
        """The name that the model's server knows."""
        return self.model.name or self.model_key or ""


@dataclass(frozen=True)
class AgentLaunch:
    """What an agent is started with."""

    setup: AgentSetup
    task_id: str
    seed: int
    run: Path
    """The run's directory."""
    address: str
    """The address of the run's server."""
    token: str
    """The API key of the run's server, which the agent has as ``RE_BENCH_TOKEN``."""
    task_key: str | None
    """The variable with the key for the task's own chat model; None if the task asks no real one."""

    @property
    def directory(self) -> Path:
        """The agent's own directory, in which it starts."""
        return self.run / AGENT

    def values(self) -> dict[str, str]:
        """Return the values of the placeholders; unknown and unbounded ones are empty."""
        setup, budget = self.setup, self.setup.budget
        values = (
            self.address, self.task_id, self.directory, setup.plan_directory, setup.model_name, setup.model.base_url,
            self.seed, f"{budget.hours:g}", budget.dollars, budget.tokens, budget.steps,
        )  # fmt: skip
        known = dict(zip(PLACEHOLDERS, values, strict=True))
        return {name: "" if value is None else str(value) for name, value in known.items()}


class AgentKind(ABC):
    """How agents of one kind are checked, started, stopped and resumed.

    The defaults fit a program that knows nothing of evaluations: it is stopped by SIGTERM, begins again afterwards, and
    has ended when it exits.
    """

    needs_model: ClassVar[bool] = False
    """Whether a plan must name a model for it."""
    keeps_budget: ClassVar[bool] = False
    """Whether it ends by itself at every limit of the budget, after its last submission was scored, and reports in
    ``usage.json`` what a call may cost before it makes it."""
    suspend_signal: ClassVar[signal.Signals] = signal.SIGTERM
    """What it gets when the evaluation stops."""

    def problems(self, agent: Agent) -> Iterator[str]:
        """Yield what is wrong with the table of an agent, each as ``key: problem``."""
        if agent.command is not None:
            yield f"command: must be left out, because kind is {agent.kind}"

    def missing(self, setup: AgentSetup) -> Iterator[str]:
        """Yield what would keep an agent from starting on this machine, each with ``agents.NAME``."""
        yield from ()

    @abstractmethod
    def argv(self, launch: AgentLaunch, *, resume: bool) -> list[str]:
        """Return the command line that starts an agent; ``resume`` is True only if :meth:`can_resume` was."""

    def environment(self, launch: AgentLaunch) -> Mapping[str, str]:
        """Return variables besides ``RE_BENCH_*`` and those of the plan."""
        return {}

    def can_resume(self, directory: Path, usage: Usage) -> bool:
        """Tell whether a run can go on in the same session, from what is in the agent's directory."""
        return False

    def asked_no_model(self, directory: Path) -> bool:
        """Tell whether an agent that has ended called no model, so that it has cost nothing."""
        return False

    def directory_of(self, command_line: Sequence[str]) -> str | None:
        """Return the agent's directory from its command line.

        Only a program that hides its environment needs this: otherwise a variable tells which run it belongs to.
        """
        return None

    def ended(self, usage: Usage, status: int | None, last_line: str, *, opened: bool) -> AgentExit:
        """Return how an agent ended.

        Args:
            usage: what it has reported.
            status: its exit status; None if an evaluation was killed meanwhile, before the run is resumed.
            last_line: the last line that it printed.
            opened: whether it has opened a session; otherwise it has never worked on the task.
        """
        if status == TEMPORARY_FAILURE:
            return AgentExit("failed", f"the agent says that it could not work: {last_line}")
        if not opened:
            said = f"the agent ended with exit status {status} and has opened no session: {last_line}"
            return AgentExit("failed", said)
        if status is None and usage.reason is None:
            return AgentExit("failed", "the evaluation was killed")
        reason = "finished" if status == 0 else f"exit status {status}: {last_line}"[:200]
        return AgentExit("ended", usage.reason or reason)


class CommandKind(AgentKind):
    """Any program, with placeholders in the words of its command line."""

    def problems(self, agent: Agent) -> Iterator[str]:
        """Yield a missing command and unknown placeholders."""
        if agent.command is None:
            yield "command: is required, because kind is command"
        if agent.options:
            yield "options: must be left out, because kind is command"
        for index, word in enumerate(agent.command or ()):
            if not _has_known_placeholders(word):
                yield f"command[{index}]: may name in braces {', '.join(PLACEHOLDERS)} (braces themselves are doubled)"

    def missing(self, setup: AgentSetup) -> Iterator[str]:
        """Yield a program or script that does not exist."""
        command = setup.agent.command or ()
        program, *arguments = (word.replace("{plan}", str(setup.plan_directory)) for word in command)
        if "{" not in program and shutil.which(program, path=setup.agent.environment.get("PATH")) is None:
            yield f"agents.{setup.name}.command: there is no program {program}"
        script = Path(arguments[0]) if arguments and command[1].startswith("{plan}/") else None
        if script is not None and "{" not in arguments[0] and not script.exists():
            yield f"agents.{setup.name}.command: there is no file {script}"

    def argv(self, launch: AgentLaunch, *, resume: bool) -> list[str]:
        """Return the words of the command with their values."""
        return [word.format(**launch.values()) for word in launch.setup.agent.command or ()]

    def environment(self, launch: AgentLaunch) -> Mapping[str, str]:
        """Return what clients of OpenAI's API read by themselves."""
        model = launch.setup.model
        key = os.environ.get(model.key_variable) if model.key_variable else None
        return ({"OPENAI_BASE_URL": model.base_url} if model.base_url else {}) | ({OPENAI_KEY: key} if key else {})


def _has_known_placeholders(word: str) -> bool:
    try:
        fields = list(string.Formatter().parse(word))
    except ValueError:
        return False
    return all(name is None or (name in PLACEHOLDERS and not form and not how) for _text, name, form, how in fields)


@cache
def kind_named(name: str) -> AgentKind:
    """Return a kind of agents; packages cannot replace the built-in one.

    Raises:
        UsageError: if no such kind is installed, or its package cannot be imported.
    """
    if name == "command":
        return CommandKind()
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        known = ", ".join(["command", *sorted(entries)])
        raise UsageError(f"no agent kind {name!r} is installed; known: {known}; install the package that provides it")
    try:
        kind: AgentKind = entries[name].load()()
    except ImportError as error:
        raise UsageError(f"the agent kind {name!r} cannot be imported: {error}") from None
    return kind


def agent_environment(kind: AgentKind, launch: AgentLaunch, keys: AbstractSet[str]) -> dict[str, str]:
    """Return an agent's environment variables: ours without ``keys`` of other models, and those of the run."""
    agent, model = launch.setup.agent, launch.setup.model
    own_key = model.key_variable if model.base_url else model.key_variable or OPENAI_KEY
    environment = environment_without(keys - {own_key, launch.task_key})
    environment |= {f"RE_BENCH_{name.upper()}": value for name, value in launch.values().items()}
    environment |= {"RE_BENCH_TOKEN": launch.token, "RE_BENCH_WAITS": str(launch.run / WAITS)}
    return environment | dict(kind.environment(launch)) | agent.environment


def environment_without(variables: AbstractSet[str]) -> dict[str, str]:
    """Return our environment variables but for some."""
    return {name: value for name, value in os.environ.items() if name not in variables}
