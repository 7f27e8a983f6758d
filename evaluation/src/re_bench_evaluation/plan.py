"""The plan of an evaluation, ``PLAN.toml``: agents, models, tasks, seeds, and what a run may use.

``docs/evaluations.md`` explains the keys to people.
"""

import string
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from re_bench.errors import UsageError
from re_bench.task.chat_model import ChatModel

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
Line = Annotated[str, Field(pattern=r"^[^\r\n]*\S[^\r\n]*$")]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Lines = Annotated[tuple[Line, ...], Field(strict=False)]
Words = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Dollars = Annotated[float, Field(ge=0)]
Price = Annotated[tuple[Dollars, Dollars], Field(strict=False)]
"""Dollars a million tokens of prompt and completion."""
Seed = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""It is in the name of a directory."""


class Table(BaseModel):
    """A table of a plan; a key that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Model(Table):
    """A model that agents ask."""

    name: Line | None = None
    """The name that its server knows; by default the table's."""
    base_url: Annotated[Line, Field(pattern="^https?://")] | None = None
    """Its OpenAI-compatible server; None for OpenAI's."""
    key_variable: Line | None = None
    """The environment variable that has the server's key; None for a server without one."""
    price: Price | None = None
    """What runs cost is not known without it."""
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

    def problems(self) -> Iterator[str]:
        """Yield keys that do not fit the kind, options that the plan decides, and unknown placeholders."""
        if self.kind == "command":
            if self.command is None:
                yield "command: is required, because kind is command"
            if self.options:
                yield "options: must be left out, because kind is command"
        elif self.command is not None:
            yield "command: must be left out, because kind is mlab"
        elif self.models == ():
            yield "models: must name a model, because kind is mlab"
        for index, word in enumerate(self.options):
            if word.partition("=")[0] in MLAB_OPTIONS_OF_PLAN:
                yield f"options[{index}]: {word} follows from other keys of the plan"
        for index, word in enumerate(self.command or ()):
            if not _has_known_placeholders(word):
                yield f"command[{index}]: may name in braces {', '.join(PLACEHOLDERS)} (braces themselves are doubled)"


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
    memory_mib: int | None = Field(default=None, ge=0)
    """By default what ``server.memory_mib`` gives its session, or that option's own default."""
    gpus: float = Field(default=0, ge=0)
    """A whole number, or less than 1 for runs that share a GPU."""
    gpu_type: Line | None = None
    """A part of the GPU's name; on Ray the accelerator type of the node."""


class TaskModel(Table):
    """Another chat model for tasks that ask one, as ``re-bench serve --model``."""

    name: Line
    price: Price | None = None
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
    seeds: Annotated[tuple[Seed, ...], Field(strict=False, min_length=1)] | None = None
    """The seeds themselves, instead."""
    dollars: float | None = Field(default=None, gt=0)
    """The most that all runs together may cost, those that failed included."""
    tries: int = Field(default=3, ge=1)
    """How often in a row a run may fail for an internal reason before it is given up."""
    models: dict[Name, Model] = Field(default_factory=dict)
    agents: Annotated[dict[Name, Agent], Field(min_length=1)]
    budget: Budget = Field(default_factory=Budget)
    resources: RunResources = Field(default_factory=RunResources)
    server: ServerOptions = Field(default_factory=ServerOptions)

    @model_validator(mode="after")
    def _check_problems(self) -> Self:
        if problems := list(self._problems()):
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        """Yield what does not fit together, over tables, with its key."""
        if (self.runs is None) == (self.seeds is None):
            yield "runs: either runs or seeds is required, not both"
        for key, entries in (("tasks", self.tasks), ("seeds", self.seeds or ())):
            for index, entry in enumerate(entries):
                if entry in entries[:index]:
                    yield f"{key}[{index}]: {entry} is there already"
        if self.resources.gpus > 1 and self.resources.gpus != int(self.resources.gpus):
            yield "resources.gpus: must be a whole number, or less than 1"
        yield from self._model_problems()
        if self.dollars is not None:
            yield from self._cap_problems()

    def _model_problems(self) -> Iterator[str]:
        """Yield what is wrong with agents, and models of theirs that the plan does not have."""
        for name, agent in self.agents.items():
            yield from (f"agents.{name}.{problem}" for problem in agent.problems())
            for index, model in enumerate(agent.models or ()):
                if model not in self.models:
                    yield f"agents.{name}.models[{index}]: there is no table models.{model}"
            if agent.kind == "mlab" and agent.models is None and not self.models:
                yield f"models: is required, because the agent {name} is mlab"

    def _cap_problems(self) -> Iterator[str]:
        """Yield what a cap on dollars needs to be kept."""
        if self.budget.dollars is None:
            yield "budget.dollars: is required, because dollars caps the cost of all runs"
        used = {model for agent in self.agents for model in self.models_of(agent)}
        for name, model in self.models.items():
            if name in used and model.price is None:
                yield f"models.{name}.price: is required, because dollars caps the cost of all runs"

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

    def record(self) -> dict[str, Any]:
        """Return the plan as ``evaluation.json`` keeps it: with all defaults, and with the seeds of every cell."""
        return self.model_dump(mode="json") | {"all_seeds": list(self.all_seeds)}


def load_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        UsageError: if it cannot be used; a line for each problem, with file, key and what was expected.
    """
    try:
        plan = Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError("\n".join(f"{path}: {line}" for line in _lines(error))) from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"{path}: is not TOML: {error}") from None
    if plan.name is not None:
        return plan
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem).strip("-")
    return plan.model_copy(update={"name": name[:60] or "evaluation"})


def _lines(error: ValidationError) -> Iterator[str]:
    for fault in error.errors():
        if fault["type"] == "value_error":  # of Plan, whose lines have keys already
            yield from str(fault["ctx"]["error"]).splitlines()
            continue
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in fault["loc"]).removeprefix(".")
        yield f"{where}: {'unknown key' if fault['type'] == 'extra_forbidden' else fault['msg']}"


def _has_known_placeholders(word: str) -> bool:
    try:
        fields = list(string.Formatter().parse(word))
    except ValueError:
        return False
    return all(name is None or (name in PLACEHOLDERS and not form and not how) for _text, name, form, how in fields)


def changed_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the keys by which a plan may not differ from the one that an evaluation began with, spelled as in TOML.

    What may: further tasks, models, agents, models of an agent and seeds; a higher cap on dollars, and another number
    of tries; where a model's server is, and which variable has its key.
    """
    changed = [".".join(key) for key, old, new in sorted(_differences(before, now)) if not _may_change(key, old, new)]
    return ["seeds" if key == "all_seeds" else key for key in changed]


def _differences(before: Any, now: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        if before != now:
            yield path, before, now
        return
    for key in {*before, *now}:
        yield from _differences(before.get(key), now.get(key), (*path, key))


def _may_change(key: tuple[str, ...], before: Any, now: Any) -> bool:
    extended = isinstance(before, list) and isinstance(now, list) and set(before) <= set(now)
    match key:
        case ("agents" | "models", _):  # the whole table of an agent or a model
            return before is None
        case ("models", _, "base_url" | "key_variable") | ("tries",):
            return True
        case ("runs",) | ("seeds",):
            return True  # all_seeds tells
        case ("agents", _, "models") | ("tasks",) | ("all_seeds",):
            return extended
        case ("dollars",):
            return now is None or (before is not None and now >= before)
    return False
