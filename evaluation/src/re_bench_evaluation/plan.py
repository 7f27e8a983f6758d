"""The plan of an evaluation, ``PLAN.toml``: agents, models, tasks, seeds, and what a run may use.

``docs/evaluations.md`` explains the keys to people.
"""

import itertools
import string
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from re_bench.errors import UsageError
from re_bench.task.chat_model import ChatModel
from re_bench.task.field_types import Line, Words
from re_bench.task.manifest_file import ManifestError, read_table
from re_bench.task.table import Conflict, Table, as_list, as_number, get_in

PLACEHOLDERS = (
    "server", "task", "run", "plan", "model", "base_url", "seed", "hours", "dollars", "tokens", "steps"
)  # fmt: skip
"""What a command may name in braces."""
MLAB_OPTIONS_OF_PLAN = (
    "--ors", "--task", "--run", "--token-variable", "--model", "--price", "--context-tokens", "--base-url",
    "--key-variable", "--seed", "--max-time", "--max-cost", "--max-tokens", "--max-steps", "--workdir", "--check",
)  # fmt: skip
"""Options of ``mlab-agent`` that follow from other keys of the plan."""

Name = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Lines = Annotated[tuple[Line, ...], Field(strict=False)]
Dollars = Annotated[float, Field(ge=0)]
Seed = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""It is in the name of a directory."""


class Model(Table):
    """A model that agents ask."""

    name: Line | None = None
    """The name that its server knows; by default the table's."""
    base_url: Annotated[Line, Field(pattern="^https?://")] | None = None
    """Its OpenAI-compatible server; None for OpenAI's."""
    key_variable: Line | None = None
    """The environment variable that has the server's key; None for a server without one."""
    price: tuple[Dollars, Dollars] | None = Field(default=None, strict=False)
    """Dollars a million tokens of prompt and completion; what runs cost is not known without it."""
    context_tokens: int | None = Field(default=None, ge=1000)


class Agent(Table):
    """An agent: mlab-agent with options, or a command."""

    kind: Literal["mlab", "command"]
    options: Lines = ()
    """Further options of ``mlab-agent``."""
    command: Words | None = None
    """The words of a command, with placeholders in braces."""
    models: Names | None = None
    """The models that it runs with: all of the plan by default; an empty list for an agent that asks none."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables that it gets besides."""

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield keys that do not fit the kind, options that the plan decides, and unknown placeholders."""
        kind = data.get("kind")
        if kind == "command" and data.get("command") is None:
            yield ("command",), "Field required, because kind is command"
        if kind == "mlab":
            if data.get("command") is not None:
                yield ("command",), "Input should be left out, because kind is mlab"
            if data.get("models") == []:
                yield ("models",), "Input should name a model, because kind is mlab"
        if kind == "command" and data.get("options"):
            yield ("options",), "Input should be left out, because kind is command"
        for index, word in enumerate(as_list(data.get("options"))):
            if isinstance(word, str) and word.partition("=")[0] in MLAB_OPTIONS_OF_PLAN:
                yield ("options", index), "Input should be no option that other keys of the plan decide"
        for index, word in enumerate(as_list(data.get("command"))):
            if isinstance(word, str) and (problem := _placeholder_problem(word)):
                yield ("command", index), problem


class Budget(Table):
    """The most that one run may use; what is None has no bound."""

    hours: float = Field(default=8.0, gt=0)
    """Working time."""
    wall_factor: float = Field(default=3.0, ge=1)
    """The run is stopped in any case after so many times ``hours`` by the clock on the wall."""
    dollars: float | None = Field(default=None, gt=0)
    """For the agent's model."""
    task_dollars: float | None = Field(default=None, gt=0)
    """For the chat model of a task that has one: the agent's own calls and those of scorings."""
    tokens: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)


class RunResources(Table):
    """What one run takes of a machine while it runs, scorings included."""

    cores: float = Field(default=1.0, gt=0)
    """Whole cores are its own: other runs have others."""
    memory_mib: int | None = Field(default=None, ge=0)
    """By default what ``server.memory_mib`` gives its session, or that option's own default."""
    gpus: float = Field(default=0, ge=0)
    """A whole number, or less than 1 for runs that share a GPU."""
    gpu_type: Line | None = None
    """A part of the GPU's name; on Ray the accelerator type of the node."""

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield a number of GPUs that no run can have."""
        gpus = as_number(data.get("gpus"))
        if gpus is not None and gpus > 1 and gpus != int(gpus):
            yield ("gpus",), "Input should be a whole number, or less than 1"


class TaskModel(Table):
    """Another chat model for tasks that ask one, as ``re-bench serve --model``."""

    name: Line
    price: tuple[Dollars, Dollars] | None = Field(default=None, strict=False)
    context: int | None = Field(default=None, ge=1)
    output: int | None = Field(default=None, ge=1)


_SESSION_MIB = 8192


class ServerOptions(Table):
    """Options of ``re-bench serve`` for the server of each run, by their names there."""

    network: Literal["none", "proxy", "open"] = "none"
    allow: Lines = ()
    network_mib: int | None = Field(default=None, gt=0)
    max_attempts: int | None = Field(default=None, gt=0)
    memory_mib: int | None = Field(default=None, gt=0)
    disk_mib: int | None = Field(default=None, gt=0)
    sandbox: Literal["bubblewrap", "container", "none"] | None = None
    withhold_rewards: bool = False
    link_data: bool = False
    model: TaskModel | None = None
    """Only tasks that ask a real chat model in the plan's profile get it."""
    key_variable: Line | None = None
    """The environment variable with the key of such tasks' model."""


class Plan(Table):
    """A plan: every agent with every one of its models at every task, once with each seed."""

    name: Name | None = None
    """By default that of the file."""
    profile: Line = "auto"
    tasks: Words
    """Names or ids."""
    runs: int | None = Field(default=None, ge=1, le=100_000)
    """Runs of a cell: the seeds 0, 1, ..."""
    seeds: tuple[Seed, ...] | None = Field(default=None, strict=False)
    """The seeds themselves, instead."""
    dollars: float | None = Field(default=None, gt=0)
    """The most that all runs together may cost, those that failed included."""
    tries: int = Field(default=3, ge=1)
    """How often in a row a run may fail for a reason of ours before it is given up."""
    models: dict[Name, Model] = Field(default_factory=dict)
    agents: dict[Name, Agent]
    budget: Budget = Field(default_factory=Budget)
    resources: RunResources = Field(default_factory=RunResources)
    server: ServerOptions = Field(default_factory=ServerOptions)

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield what does not fit together, over tables."""
        if data.get("runs") is not None and data.get("seeds") is not None:
            yield ("seeds",), "Input should be left out, because runs counts seeds from 0"
        if data.get("runs") is None and data.get("seeds") is None:
            yield ("runs",), "Field required, or seeds instead"
        if data.get("seeds") == [] or data.get("agents") == {}:
            yield ("seeds" if data.get("seeds") == [] else "agents",), "Input should not be empty"
        yield from _repeated(data)
        yield from _model_conflicts(data)
        if data.get("dollars") is not None:
            yield from _cap_conflicts(data)

    @property
    def run_memory_mib(self) -> int:
        """Memory that a run takes, in MiB."""
        mib = self.resources.memory_mib
        return mib if mib is not None else self.server.memory_mib or _SESSION_MIB

    @property
    def chat_model(self) -> ChatModel | None:
        """The chat model that tasks ask instead of their own, in profiles that ask a real one."""
        model = self.server.model
        if model is None:
            return None
        dollars_in, dollars_out = model.price or (None, None)
        return ChatModel(model.name, dollars_in, dollars_out, model.context, model.output)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of every cell, in order."""
        return self.seeds if self.seeds is not None else tuple(range(self.runs or 0))

    def models_of(self, agent: str) -> tuple[str | None, ...]:
        """Return the names of the models that an agent runs with; of one that asks none, None alone."""
        names = self.agents[agent].models
        return tuple(self.models if names is None else names) or (None,)

    def cells(self) -> list[tuple[str, str | None, str]]:
        """Return agent, model and task, as the plan names them, of every cell."""
        return [(agent, model, task) for agent in self.agents for model in self.models_of(agent) for task in self.tasks]


def load_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        UsageError: if it cannot be used; a line for each problem, with file, key and what was expected.
    """
    try:
        plan = read_table(path, Plan)
    except ManifestError as error:
        raise UsageError("\n".join(error.problems)) from None
    if plan.name is not None:
        return plan
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem).strip("-")
    return plan.model_copy(update={"name": name[:60] or "evaluation"})


def _placeholder_problem(word: str) -> str | None:
    known = f"Input should name nothing in braces but {', '.join(PLACEHOLDERS)} (braces themselves are doubled)"
    try:
        fields = list(string.Formatter().parse(word))
    except ValueError:
        return known
    plain = all(name is None or (name in PLACEHOLDERS and not form and not how) for _text, name, form, how in fields)
    return None if plain else known


def _repeated(data: Mapping[str, Any]) -> Iterator[Conflict]:
    for key in ("tasks", "seeds"):
        entries = as_list(data.get(key))
        for index, entry in enumerate(entries):
            if entry in entries[:index]:
                yield (key, index), "Input should be there once"


def _agents(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    agents = data.get("agents")
    return [(str(name), agent) for name, agent in agents.items()] if isinstance(agents, Mapping) else []


def _names(table: Any) -> Iterable[str]:
    return [str(name) for name in table] if isinstance(table, Mapping) else []


def _model_conflicts(data: Mapping[str, Any]) -> Iterator[Conflict]:
    """Yield models of agents that the plan does not have."""
    models = _names(data.get("models"))
    for name, agent in _agents(data):
        for index, model in enumerate(as_list(get_in(agent, "models"))):
            if isinstance(model, str) and model not in models:
                yield ("agents", name, "models", index), "Input should be the name of a table in models"
        if get_in(agent, "kind") == "mlab" and get_in(agent, "models") is None and not models:
            yield ("models",), f"Field required, because the agent {name} is mlab"


def _cap_conflicts(data: Mapping[str, Any]) -> Iterator[Conflict]:
    """Yield what a cap on dollars needs to be kept."""
    if get_in(data, "budget", "dollars") is None:
        yield ("budget", "dollars"), "Field required, because dollars caps the cost of all runs"
    used = [as_list(get_in(agent, "models")) for _name, agent in _agents(data)]
    everything = any(get_in(agent, "models") is None for _name, agent in _agents(data))
    named = {str(name) for name in itertools.chain(*used)}
    for name in _names(data.get("models")):
        if (everything or name in named) and get_in(data, "models", name, "price") is None:
            yield ("models", name, "price"), "Field required, because dollars caps the cost of all runs"
