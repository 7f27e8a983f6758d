"""The tables of a plan that describe an agent and its run; ``docs/evaluations.md`` explains the keys."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
Line = Annotated[str, Field(pattern=r"^[^\r\n]*\S[^\r\n]*$")]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Lines = Annotated[tuple[Line, ...], Field(strict=False)]
Words = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Dollars = Annotated[float, Field(ge=0)]
Price = Annotated[tuple[Dollars, Dollars], Field(strict=False)]
"""Dollars a million tokens of prompt and completion."""


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
    """An agent: ``command``, or one of a kind that an installed package adds."""

    kind: Line
    """The name of an :class:`~re_bench_evaluation.agents.AgentKind`."""
    options: Lines = ()
    """Further options of the kind's own program."""
    command: Words | None = None
    """The words of a command, with placeholders in braces."""
    models: Names | None = None
    """The models that it runs with: all of the plan by default; an empty list for an agent that asks none."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables that it gets besides."""


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
