"""The definition of an action: name, arguments, function; and the context that the function works with."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mlab_agent.workspaces.base import Workspace

Kind = Literal["string", "integer", "number", "strings"]


class InputError(Exception):
    """The arguments of an action are wrong; the message says exactly how."""


class TruncatedReply(Exception):  # noqa: N818 - it is a reply, not an internal error
    """The model's reply ended at its token limit; the message is the reply. So no part is taken for a whole."""


@dataclass(frozen=True)
class Argument:
    """One argument of an action."""

    name: str
    description: str
    kind: Kind = "string"
    required: bool = True
    aliases: tuple[str, ...] = ()
    """Other names that models give it, including those of MLAgentBench."""

    def convert(self, value: Any) -> Any:
        """Return a value as the argument's type.

        Raises:
            InputError: if it cannot be converted.
        """
        try:
            return _CONVERTERS[self.kind](value)
        except (ValueError, TypeError, OverflowError):
            written = json.dumps(value, ensure_ascii=False, default=str)
            raise InputError(f'"{self.name}" must be {_KINDS[self.kind]}, not {written[:80]}') from None

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        if self.kind == "strings":
            return {"type": "array", "items": {"type": "string"}, "description": self.description}
        return {"type": self.kind, "description": self.description}


@dataclass(frozen=True)
class Limits:
    """Limits of actions. Characters are those that the model is shown."""

    observation_chars: int = 20_000
    execute_s: float = 3600.0
    """The default and the maximum of a script's time limit, in seconds."""
    inspect_lines: int = 101
    list_entries: int = 500
    understand_chars: int = 24_000
    """How much of a file is given to the model that is asked about it."""
    edit_chars: int = 200_000
    """The longest file, or segment, that the model is asked to edit."""
    edit_tries: int = 2


@dataclass
class Context:
    """What an action works with."""

    workspace: Workspace
    writes: Callable[[str], list[str | None]]
    """``writes(name)`` returns the stored contents that the writes of a file replaced, None for no file."""
    emit: Callable[..., None]
    """Writes an event to the trace."""
    ask: Callable[[str, str], str]
    """``ask(prompt, purpose)`` returns a model's reply, for actions that need one; raises TruncatedReply."""
    limits: Limits = field(default_factory=Limits)
    seconds_left: Callable[[], float | None] = lambda: None
    """The time that the run has left; no script gets more."""

    def save(self, path: str, data: bytes) -> None:
        """Write a file, after its content was recorded for undo.

        Raises:
            WorkspaceError: if it may not be written, or its content cannot be recorded.
        """
        self.record(path)
        self.workspace.write_bytes(path, data)

    def record(self, path: str) -> None:
        """Record the content of a file that is about to be written, for undo."""
        self.workspace.check_writable(path)
        name = self.workspace.name(path)
        exists = self.workspace.exists(name)
        before = self.workspace.store.put(self.workspace.read_bytes(name)) if exists else None
        self.emit("write", path=name, before=before)


@dataclass(frozen=True)
class Action:
    """One action. ``run(context, arguments)`` returns the observation; a WorkspaceError's message is one, too."""

    name: str
    description: str
    arguments: tuple[Argument, ...]
    returns: str
    run: Callable[[Context, Mapping[str, Any]], str] = field(repr=False)

    @property
    def usage(self) -> str:
        """The action as the model is to write it."""
        lines = [
            f'    "{argument.name}": [{argument.description}{"" if argument.required else "; may be left out"}]'
            for argument in self.arguments
        ]
        body = "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"
        return f"Action: {self.name}\nAction Input: {body}"

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, for native tool calls."""
        return {
            "type": "object",
            "properties": {argument.name: argument.schema for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
            "additionalProperties": False,
        }

    @property
    def tool_name(self) -> str:
        """The name for native tool calls, such as ``edit_script``."""
        return self.name.lower().replace(" ", "_")

    def check(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by their names, each converted to its type.

        Raises:
            InputError: if one is missing, unknown, given twice, or of a wrong type.
        """
        by_name = {_key(name): argument for argument in self.arguments for name in (argument.name, *argument.aliases)}
        checked: dict[str, Any] = {}
        for key, value in values.items():
            argument = by_name.get(_key(key))
            if argument is None:
                names = ", ".join(f'"{item.name}"' for item in self.arguments) or "none"
                raise InputError(f'{self.name} has no argument "{key}"; its arguments: {names}')
            if argument.name in checked:
                raise InputError(f'"{argument.name}" is given twice')
            if value is not None or argument.required:
                checked[argument.name] = argument.convert(value)
        if missing := [f'"{item.name}"' for item in self.arguments if item.required and item.name not in checked]:
            raise InputError(
                f"{self.name} needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} missing"
            )
        return checked


def _key(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _string(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not (number := float(value)) > 0:
        raise TypeError
    return number


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return shlex.split(value)
    if not isinstance(value, list):
        raise TypeError
    return [_string(item) for item in value]


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
