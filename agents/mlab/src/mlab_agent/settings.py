"""The settings of a run. The trace's first event has them, without any key, so that the run can be resumed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_URL = "https://api.openai.com/v1"


class SettingsError(Exception):
    """The settings of a run are wrong; the message says why and what to do."""


class ModelOptions(BaseModel):
    """How a model is called; None means the known value of the model, or the server's default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    base_url: str | None = None
    """Its server; None for that of the run."""
    key_variable: str | None = None
    """The environment variable with the key of its own server; None for the key of the run."""
    price: tuple[float, float] | None = None
    """Dollars a million prompt tokens, and completion tokens."""
    context_tokens: int | None = Field(default=None, ge=1_000)
    max_output_tokens: int = Field(default=8_192, ge=16)
    temperature: float | None = None


class RunSettings(BaseModel):
    """The settings of one run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workdir: str | None = None
    submission: str | None = None
    """The file in which the answer is handed in; None for the workspace's default."""
    read_only: tuple[str, ...] = ()
    """Patterns of files that the agent must not write."""
    left_out: tuple[str, ...] = ()
    """Patterns of files in the workspace that snapshots leave out."""
    python: str | None = None
    """The interpreter of Python scripts; None for the workspace's default."""
    pass_variables: tuple[str, ...] = ()
    """Environment variables that scripts in a local workspace get besides the common ones."""
    ors: str | None = None
    task: str | None = None
    environment: str = "rebench"
    split: str = "test"
    token_variable: str | None = None
    """The environment variable with the server's token."""
    secrets: dict[str, str] = Field(default_factory=dict)
    """Secrets of the session by name, each with the environment variable that has its value."""
    server_wait_seconds: float = Field(default=600.0, ge=0)
    """How long the agent waits for an ORS server that does not answer."""

    base_url: str = OPENAI_URL
    key_variable: str | None = KEY_VARIABLE
    """The environment variable with the key of that server; None for a server without a key."""
    model: ModelOptions
    fast_model: ModelOptions | None = None
    """For questions about files and for summaries; None for ``model``."""
    edit_model: ModelOptions | None = None
    """For edits; None for the fast model."""
    seed: int | None = None
    """Sent with every call; servers that know it give similar replies to similar prompts, most not the same."""
    tools: Literal["auto", "native", "text"] = "auto"
    call_timeout_s: float = Field(default=600.0, gt=0)
    attempts: int = Field(default=8, ge=1)
    first_wait_s: float = Field(default=1.0, ge=0)

    max_steps: int | None = Field(default=50, ge=1)
    max_seconds: float | None = Field(default=5 * 3600.0, gt=0)
    max_dollars: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    script_seconds: float = Field(default=3600.0, gt=0)
    max_malformed: int = Field(default=10, ge=1)
    """So many replies in a row that cannot be acted on end the run."""
    repeat_remark: int = Field(default=3, ge=0)
    """The agent is told when it has done the same so many times in a row; 0 for never."""

    recent_steps: int = Field(default=8, ge=1)
    log_chars: int = Field(default=12_000, ge=2_000)
    """The longest summary of the steps before the recent ones."""

    @property
    def key_variables(self) -> list[str]:
        """The environment variables that have keys of models' servers."""
        servers = [self, self.model, self.fast_model, self.edit_model]
        return [server.key_variable for server in servers if server and server.key_variable]

    @model_validator(mode="after")
    def _one_workspace(self) -> Self:
        if (self.workdir is None) == (self.ors is None):
            raise ValueError("a run needs either a working directory or the address of an ORS server")
        if self.ors is not None and self.task is None:
            raise ValueError("a run on an ORS server needs the id of a task")
        return self
