"""The base class of a manifest's tables: all that is wrong is reported at once, for a person who writes TOML."""

import dataclasses
import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from re_bench.errors import did_you_mean

Conflict = tuple[tuple[str | int, ...], str]
"""Where something is wrong, as keys and positions, and what should be there."""

_RESTATED = "manifest"
_LONGEST_VALUE = 60
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_MESSAGES = {
    "model_type": "Input should be a table",
    "dataclass_type": "Input should be a table",
    "dict_type": "Input should be a table",
    "tuple_type": "Input should be a list",
}
"""Instead of pydantic's own messages, where these speak of Python."""


class Table(BaseModel):
    """A table of the manifest. Unknown keys are errors, and an error's message says what was expected and found."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _report_all_errors(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        errors: list[InitErrorDetails] = []
        table = None
        try:
            table = handler(data)
        except ValidationError as error:
            errors += [cls._restate(details) for details in error.errors(include_url=False)]
        # Also when fields are wrong: nobody wants to learn of the second mistake after correcting the first.
        if isinstance(data, Mapping):
            errors += [_error(loc, f"{text}{_got(get_in(data, *loc))}") for loc, text in cls.conflicts(data)]
        if errors or table is None:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return table

    @classmethod
    def conflicts(cls, data: Mapping[str, Any]) -> Iterator[Conflict]:
        """Yield the fields of ``data``, read or not yet, that do not fit together, though each may be right."""
        del data
        yield from ()

    @classmethod
    def _restate(cls, details: ErrorDetails) -> InitErrorDetails:
        """Add to an error of pydantic's what was found or meant, unless an inner table has done so."""
        kind, loc, text = details["type"], details["loc"], details["msg"]
        if loc and loc[-1] == "[key]":  # so pydantic marks that the key is wrong, not the value
            loc = loc[:-1]
        if kind in _UNKNOWN_KEY:
            return _error(loc, _unknown_key(str(loc[-1]), cls._keys(*loc[:-1])))
        if kind not in {_RESTATED, "missing"}:
            text = _MESSAGES.get(kind, text).removeprefix("Value error, ") + _got(details["input"])
        return _error(loc, text)

    @classmethod
    def _keys(cls, *loc: str | int) -> Iterable[str]:
        """Return the keys of this table, or of the dataclass in its field ``loc[0]``."""
        if not loc:
            return cls.model_fields
        table: Any = cls.model_fields[str(loc[0])].annotation
        return [field.name for field in dataclasses.fields(table)]


def _error(loc: tuple[str | int, ...], text: str) -> InitErrorDetails:
    # The text goes in as a value: in a template, its braces would be fields.
    return InitErrorDetails(type=PydanticCustomError(_RESTATED, "{text}", {"text": text}), loc=loc, input=None)


def _unknown_key(key: str, known_keys: Iterable[str]) -> str:
    keys = list(known_keys)
    return f"unknown key; expected one of: {', '.join(keys)}{did_you_mean(key, keys)}"


def _got(value: object) -> str:
    """Return the end of a message: a value as its author wrote it, more or less, and briefly."""
    if value is None:
        return ""
    if isinstance(value, Mapping | BaseModel):
        return ", got a table"
    if isinstance(value, list | tuple):
        return ", got a list" if value else ", got an empty list"
    if isinstance(value, dt.date | dt.time):
        return f", got {value.isoformat()}"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)
    return f", got {text}" if len(text) <= _LONGEST_VALUE else f", got {text[:_LONGEST_VALUE]}…"


def get_in(data: object, *path: str | int) -> Any:
    """Follow keys and positions through tables and lists, read or not yet; None where the path ends."""
    for key in path:
        if isinstance(key, int):
            entries = as_list(data)
            data = entries[key] if key < len(entries) else None
        else:
            data = data.get(key) if isinstance(data, Mapping) else getattr(data, key, None)
    return data


def as_number(value: object) -> float | None:
    """Return what a reader would take for a number, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_list(value: object) -> list[Any] | tuple[Any, ...]:
    """Return a list, read or not yet; an empty one for anything else."""
    return value if isinstance(value, list | tuple) else ()
