"""The arguments of the tools, and errors about them that do not repeat what a client sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_COMMAND = 1 << 20
_MAX_ERRORS = 10
_MAX_NAME = 80


class Arguments(BaseModel):
    """The arguments of a tool. An error names what is wrong with which argument, never the argument's value."""

    model_config = ConfigDict(extra="forbid")

    def __init__(self, **data: object) -> None:
        """Validate the arguments.

        Raises:
            ValidationError: if one is not as it must be; the SDK sends its errors to the client.
        """
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise ValidationError.from_exception_data(
                error.title,
                [
                    InitErrorDetails(
                        type=PydanticCustomError(item["type"], "{message}", {"message": item["msg"]}),
                        loc=tuple(item["loc"]),
                        input=None,
                    )
                    for item in without_input(error.errors(include_input=False, include_context=False))
                ],
            ) from None


class Bash(Arguments):
    """The arguments of ``bash``."""

    command: str = Field(max_length=_MAX_COMMAND, description="the command, as one would type it into bash")
    timeout: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="seconds after which the command is stopped"
    )


class Answer(Arguments):
    """The arguments of ``answer``."""

    get_final_score: bool = Field(
        default=False,
        strict=True,
        description="true: end the episode with the final score of all attempts, this one included",
    )


def without_input(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the first ten of a validation's errors with ``type``, ``loc`` and ``msg`` alone, names truncated."""
    return [
        {
            "type": error["type"],
            "loc": [part[:_MAX_NAME] if isinstance(part, str) else part for part in error["loc"]],
            "msg": error["msg"],
        }
        for error in list(errors)[:_MAX_ERRORS]
    ]
