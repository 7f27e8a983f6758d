"""Settings of a gateway, and its report of what was used. They travel as JSON."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(gt=0)]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Frozen(BaseModel):
    # A message about a wrong setting must not repeat a key.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Budget(_Frozen):
    """What may be spent; None is without limit."""

    dollars: _Dollars | None = None
    tokens: _Count | None = None
    """Prompt and completion together."""
    requests: _Count | None = None
    """Calls that were answered; those that failed are free."""


class Usage(_Frozen):
    """What has been spent."""

    requests: int
    """Calls that were answered."""
    failed: int
    """Calls that the upstream failed."""
    refused: int
    """Calls that the budget did not cover."""
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    """None if a price is unknown."""
    remaining: Budget
    """What is left, reservations of running calls taken off."""


class Model(_Frozen):
    """A model that clients may ask for. What is None is looked up in :mod:`re_bench_gateway.budget`."""

    name: str
    """The name clients use."""
    asks_for: str = ""
    """The name that the upstream knows it by, if another."""
    dollars_in: _Dollars | None = None
    """Dollars a million prompt tokens."""
    dollars_out: _Dollars | None = None
    """Dollars a million completion tokens."""
    context: _Positive | None = None
    """The most tokens of a prompt."""
    max_output: _Positive | None = None
    """The most tokens of one completion."""


class OpenAICompatible(_Frozen):
    """A server that speaks OpenAI's API."""

    kind: Literal["openai"] = "openai"
    base_url: str = "https://api.openai.com/v1"
    key: str | None = Field(default=None, repr=False)
    """The real key; None where every session brings its own."""
    concurrency: _Positive = 50
    """Calls at a time; others wait."""
    attempts: _Positive = 8
    """How often a call is tried."""
    patience_s: _Seconds = 120.0
    """Seconds after which a call is not tried again."""
    timeout_s: _Seconds = 600.0
    """The longest silence of the server."""


class PlugIn(_Frozen):
    """A model written in Python, such as a stand-in: a factory that returns ``async answer(request) -> completion``."""

    kind: Literal["plug-in"] = "plug-in"
    factory: str
    """``module:function``."""
    path: Path | None = None
    """A directory to import it from."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """JSON values that the factory is called with."""
    concurrency: _Positive = 50
    """Calls at a time; others wait."""


class SessionLimits(_Frozen):
    """What one session may take of its gateway, so that it answers the others whatever one does."""

    connections: _Positive = 1000
    """Open at a time on one socket, others are closed; every session has a socket of its own."""
    calls: _Positive = 16
    """Of a session that was opened, sent to the upstream at a time; its others wait."""
    request_bytes: _Positive = 32 << 20
    """Of the requests that arrive, wait or run at a time."""
    log_bytes: _Positive = 1 << 30
    """Lines of the log, after which no further call is made, and refused ones are counted and not written."""


class Settings(_Frozen):
    """All settings of a gateway."""

    upstream: Annotated[OpenAICompatible | PlugIn, Field(discriminator="kind")]
    models: tuple[Model, ...] = Field(min_length=1)
    log: Path
    """Every call is a line there; the file need not exist, its directory must."""
    budget: Budget = Budget()
    """For all sessions together."""
    resume: tuple[str, ...] = ()
    """Names of sessions that an earlier gateway had: what the log says that they spent counts when they are opened."""
    tcp: bool = False
    """Whether to listen on a port of 127.0.0.1 too."""
    limits: SessionLimits = SessionLimits()
    client_timeout_s: _Seconds = 30.0
    """The longest that a client may take to send the body of a request."""
    max_body_bytes: _Positive = 4 << 20
    """The longest request."""
    max_answer_bytes: _Positive = 32 << 20
    """The longest answer of the upstream."""
