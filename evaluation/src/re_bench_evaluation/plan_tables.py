"""Define the tables of a plan for models, agents and runs; ``docs/evaluations.md`` explains the keys."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)]
Line = Annotated[str, Field(pattern=r"^[^\r\n]*\S[^\r\n]*$")]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Lines = Annotated[tuple[Line, ...], Field(strict=False)]
Words = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
Dollars = Annotated[float, Field(ge=0)]
Price = Annotated[tuple[Dollars, Dollars], Field(strict=False)]
"""Dollars per million prompt and completion tokens."""


class StrictModel(BaseModel):
    """A table of a plan; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Model(StrictModel):
    """A model for agents."""

    name: Line | None = None
    """The name for its server; defaults to the table's name."""
    base_url: Annotated[Line, Field(pattern="^https?://")] | None = None
    """Its OpenAI-compatible server; None for OpenAI's."""
    key_variable: Line | None = None
    """Environment variable with the server's key; None without a key."""
    price: Price | None = None
    """Without it, costs are unknown."""
    context_tokens: int | None = Field(default=None, ge=1000)


class Agent(StrictModel):
    """An agent of the kind ``command`` or of an installed kind."""

    kind: Line
    """The name of an :class:`~re_bench_evaluation.agents.AgentKind`."""
    options: Lines = ()
    """Additional options of the kind's program."""
    command: Words | None = None
    """A command line with placeholders in braces."""
    models: Names | None = None
    """Its models: by default all of the plan; an empty list for an agent without a model."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Additional environment variables."""


class Budget(StrictModel):
    """The limits of one run; None is unlimited."""

    hours: float = Field(default=8.0, gt=0)
    """Working time."""
    wall_factor: float = Field(default=3.0, ge=1)
    """Limit of wall-clock time, as a multiple of ``hours``."""
    dollars: float | None = Field(default=None, gt=0)
    """Cost of the agent's model."""
    task_dollars: float | None = Field(default=None, gt=0)
    """Cost of the task's chat model, for calls by the agent and by scorings."""
    tokens: int | None = Field(default=None, gt=0)
    steps: int | None = Field(default=None, gt=0)


class RunResources(StrictModel):
    """The resources of one run, including its scorings."""

    cores: float = Field(default=1.0, gt=0)
    memory_mib: int | None = Field(default=None, ge=0)
    """Defaults to ``server.memory_mib`` or the default of that option."""
    gpus: float = Field(default=0, ge=0)
    """An integer, or less than 1 to share a GPU."""
    gpu_type: Line | None = None
    """Part of the GPU's name; on Ray the node's accelerator type."""


class TaskModel(StrictModel):
    """A replacement for the chat model of tasks, like ``re-bench serve --model``."""

    name: Line
    price: Price | None = None
    context: int | None = Field(default=None, ge=1)
    output: int | None = Field(default=None, ge=1)


class ServerOptions(StrictModel):
    """Options of ``re-bench serve`` for the server of each run."""

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
    """Used by tasks that call a real chat model in the plan's profile."""
    key_variable: Line | None = None
    """Environment variable with the key of that model."""
