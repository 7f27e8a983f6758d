"""Tables whose errors are said in plain words: what lies between pydantic and a person who writes TOML."""

import datetime as dt
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

__all__ = ["Conflict", "Table", "at", "listed", "number", "said", "unknown_key"]

Conflict = tuple[tuple[str | int, ...], str]
"""Where something is wrong, as keys and positions, and what, in words."""

_SHOWN = 60
_SAID = "manifest"

# What pydantic's error types mean to a person who writes TOML.
_WORDS = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "date_type": "a date such as 2026-01-31, without quotes",
    "model_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "literal_error": "one of {expected}",
}


class Table(BaseModel):
    """A table of the manifest: unknown keys are refused, and all that is wrong is said at once, in plain words."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _say_everything(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        lines: list[InitErrorDetails] = []
        table = None
        try:
            table = handler(data)
        except ValidationError as error:
            lines += [cls._said(details) for details in error.errors(include_url=False)]
        # Also when the fields are wrong: nobody wants to be told of the second mistake after mending the first.
        if isinstance(data, Mapping):
            lines += [_problem(*conflict) for conflict in cls.conflicts(data)]
        if lines or table is None:
            raise ValidationError.from_exception_data(cls.__name__, lines)
        return table

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield where and in what words fields, each maybe right, do not fit together."""
        del data
        yield from ()

    @classmethod
    def _said(cls, details: ErrorDetails) -> InitErrorDetails:
        """Put an error of pydantic's into words, unless an inner table has done so."""
        kind, loc = details["type"], details["loc"]
        if loc and loc[-1] == "[key]":  # so pydantic marks that the key is wrong, not the value
            loc = loc[:-1]
        if kind == _SAID:
            return _problem(loc, details["msg"])
        if kind == "extra_forbidden":
            return _problem(loc, unknown_key(str(loc[-1]), cls.model_fields))
        if kind == "missing":
            return _problem(loc, f"expected {cls.model_fields[str(loc[-1])].description}, got nothing")
        return _problem(loc, f"expected {_expected(details)}, got {_shown(details['input'])}")


def _expected(details: ErrorDetails) -> str:
    """Say what should have been there; an error that has no words here keeps pydantic's own."""
    context = details.get("ctx", {})
    if details["type"] == "value_error":
        return str(context["error"])
    words = _WORDS.get(details["type"])
    return details["msg"] if words is None else words.format_map(context)


def _problem(loc: tuple[str | int, ...], text: str) -> InitErrorDetails:
    return InitErrorDetails(type=said(text), loc=loc, input=None)


def said(text: str) -> PydanticCustomError:
    """Return an error whose text reaches the reader as it is."""
    # The text goes in as a value: in a template, its braces would be fields.
    return PydanticCustomError(_SAID, "{text}", {"text": text})


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key is unknown, which ones are known, and which one may have been meant."""
    names = list(known)
    close = difflib.get_close_matches(key, names, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"unknown key; expected one of: {', '.join(names)}{hint}"


def at(data: object, *path: str) -> object:
    """Follow keys through tables, read or not yet; None where the way ends."""
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
    return data


def number(value: object) -> float | None:
    """Return what a reader would take for a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def listed(value: object) -> Iterable[object]:
    """Return the entries of a list, read or not yet; none of anything else."""
    return value if isinstance(value, list | tuple) else ()


def _shown(value: object) -> str:
    """Show a value as its author wrote it, more or less, and briefly."""
    if isinstance(value, Mapping | BaseModel):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
