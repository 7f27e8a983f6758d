"""The options of the agent, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import CachePolicy, Model  # noqa: TC002 - pydantic reads the annotations
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError, field_validator

from re_bench_inspect.mlab.answers import Answer  # noqa: TC001 - as above
from re_bench_inspect.registered import words

if TYPE_CHECKING:
    from collections.abc import Mapping


class MlabOptions(BaseModel):
    """The options of :func:`~re_bench_inspect.mlab.mlab`, which has their defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    fast_model: str | Model | None
    edit_model: str | Model | None
    tools: Literal["auto", "native", "text"]
    cache: bool | CachePolicy
    max_steps: int | None = Field(ge=1)
    script_seconds: float = Field(gt=0)
    max_malformed: int = Field(ge=1)
    repeat_remark: int = Field(ge=0)
    recent_steps: int = Field(ge=1)
    context_tokens: int | None = Field(ge=1_000)
    max_output_tokens: int | None = Field(ge=16)
    sandbox: str | None
    directory: str | None
    python: str | None
    read_only: tuple[str, ...]
    score: bool | None
    answer: SkipValidation[Answer] | None
    trace_directory: str | None

    @field_validator("read_only", mode="before")
    @classmethod
    def _words(cls, value: str | list[str]) -> tuple[str, ...]:
        return tuple(words(value))


def checked_options(options: Mapping[str, Any]) -> MlabOptions:
    """Return the options.

    Raises:
        PrerequisiteError: if one is wrong, which Inspect shows without a traceback.
    """
    try:
        return MlabOptions(**options)
    except ValidationError as error:
        problems = "; ".join(f"{item['loc'][0]}={item['input']}: {item['msg']}" for item in error.errors())
        raise PrerequisiteError(f"re_bench/mlab: {problems}") from None
