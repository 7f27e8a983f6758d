"""What an action is, and what it works with."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mlab_agent.homes import Home
    from mlab_agent.journal import Journal

__all__ = ["Action", "Argument", "Context", "CutReply", "InputError", "Limits"]

Kind = Literal["string", "integer", "number", "strings"]


class InputError(Exception):
    """The arguments of an action are wrong; the text says exactly how."""


class CutReply(Exception):  # noqa: N818 - it is a reply, not a mistake
    """The model's reply ended at its token limit. ``ask`` raises it, so that no part is taken for the whole."""


@dataclass(frozen=True)
class Argument:
    """One argument of an action."""

    name: str
    description: str
    kind: Kind = "string"
    required: bool = True
    also: tuple[str, ...] = ()
    """Other names that models give it, those of MLAgentBench among them."""

    def value(self, given: Any) -> Any:
        """Return what was given as the argument's type.

        Raises:
            InputError: if it is no such thing.
        """
        try:
            return _CONVERTERS[self.kind](given)
        except (ValueError, TypeError, OverflowError):
            shown = json.dumps(given, ensure_ascii=False, default=str)
            raise InputError(f'"{self.name}" must be {_KINDS[self.kind]}, not {shown[:80]}') from None

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        if self.kind == "strings":
            return {"type": "array", "items": {"type": "string"}, "description": self.description}
        return {"type": self.kind, "description": self.description}


@dataclass(frozen=True)
class Limits:
    """What bounds actions. Characters are those of what the model is shown."""

    observation_chars: int = 20_000
    execute_s: float = 3600.0
    """The time limit of a script that asks for none, and the most that it can ask for."""
    inspect_lines: int = 101
    list_entries: int = 500
    understand_chars: int = 24_000
    """How much of a file is given to the model at a time."""
    understand_rounds: int = 3
    """How often the model may ask for other passages of the same file, the first time included."""
    edit_chars: int = 200_000
    """The longest file, or segment, that the model is asked to edit."""
    edit_tries: int = 2


@dataclass
class Context:
    """What an action works with."""

    home: Home
    journal: Journal
    ask: Callable[[str, str], str]
    """``ask(prompt, purpose)``: the model's reply, for compound actions. Raises CutReply where it was cut."""
    limits: Limits = field(default_factory=Limits)
    now: Callable[[], float] = time.time
    seconds_left: Callable[[], float | None] = lambda: None
    """How much time the run has left; no script gets more."""

    def save(self, path: str, data: bytes) -> None:
        """Write a file, after its content was kept for undo.

        Raises:
            HomeError: if it may not be written, or its content cannot be kept.
        """
        self.keep(path)
        self.home.write_bytes(path, data)

    def keep(self, path: str) -> None:
        """Keep the content of a file that is about to be written."""
        self.home.check_writable(path)
        name = self.home.name(path)
        self.journal.keep(name, self.home.read_bytes(name) if self.home.exists(name) else None)


@dataclass(frozen=True)
class Action:
    """One action. ``run(context, arguments)`` returns the observation; it raises HomeError with one for the model."""

    name: str
    description: str
    arguments: tuple[Argument, ...]
    returns: str
    run: Callable[[Context, Mapping[str, Any]], str] = field(repr=False)

    @property
    def usage(self) -> str:
        """The action as the model is to write it."""
        lines = [
            f'    "{each.name}": [{each.description}{"" if each.required else "; may be left out"}]'
            for each in self.arguments
        ]
        body = "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"
        return f"Action: {self.name}\nAction Input: {body}"

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, for native tool calls."""
        return {
            "type": "object",
            "properties": {each.name: each.schema for each in self.arguments},
            "required": [each.name for each in self.arguments if each.required],
            "additionalProperties": False,
        }

    @property
    def tool_name(self) -> str:
        """The name for native tool calls, such as ``edit_script``."""
        return self.name.lower().replace(" ", "_")

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by their names and of their types.

        Raises:
            InputError: if one is missing, unknown, given twice, or of a wrong type.
        """
        names = {_key(name): each for each in self.arguments for name in (each.name, *each.also)}
        found: dict[str, Any] = {}
        for key, value in given.items():
            argument = names.get(_key(key))
            if argument is None:
                known = ", ".join(f'"{each.name}"' for each in self.arguments) or "none"
                raise InputError(f'{self.name} has no argument "{key}"; its arguments: {known}')
            if argument.name in found:
                raise InputError(f'"{argument.name}" is given twice')
            if value is not None or argument.required:
                found[argument.name] = argument.value(value)
        if missing := [f'"{each.name}"' for each in self.arguments if each.required and each.name not in found]:
            raise InputError(
                f"{self.name} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} missing"
            )
        return found


def _key(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _string(given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise TypeError
    return str(given)


def _integer(given: Any) -> int:
    if isinstance(given, bool) or (isinstance(given, float) and not given.is_integer()):
        raise TypeError
    return int(given)


def _number(given: Any) -> float:
    if isinstance(given, bool) or not (number := float(given)) > 0:
        raise TypeError
    return number


def _strings(given: Any) -> list[str]:
    if isinstance(given, str):
        return shlex.split(given)
    if not isinstance(given, list):
        raise TypeError
    return [_string(each) for each in given]


_CONVERTERS: Mapping[Kind, Callable[[Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "strings": _strings,
}
_KINDS: Mapping[Kind, str] = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number above 0",
    "strings": "a list of strings",
}
