"""Parse a reply of the model: its fields, the first action, and the input of that action.

Headings count at the beginning of a line only, and not within the input. What comes after the first action, and an
Observation that the model made up, is dropped. Each repair is noted; the error about a reply that cannot be read tells
the model exactly what was wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from mlab_agent.actions import ACTIONS, Action, InputError, find
from mlab_agent.lenient_json import JsonError, read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
"""The fields of a reply, in order."""

_TEXTS = FIELDS[:4]
_ACTION, _INPUT, _OBSERVATION = "Action", "Action Input", "Observation"
_HEADING = re.compile(
    r"^[ \t]*(?:[#>]+[ \t]*|[-*][ \t]+|\d+[.)][ \t]*)?[*_`]*"
    r"(Reflection|Research[ ]Plan[ ](?:and|&)[ ]Status|Fact[ ]?Check|Thought|Action[ _]?Input|Action|Observation)"
    r"[*_`]*[ \t]*:[*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
_NAMES = {re.sub(r"[ _&]|and", "", name.lower()): name for name in (*FIELDS, _OBSERVATION)}
_FENCE = re.compile(r"\s*(?:```|~~~)[\w-]*[ \t]*\n?")
_FENCE_END = re.compile(r"\s*(?:```|~~~)[ \t]*(?=\n|$)")
_NO_INPUT = {"", "none", "null", "n/a", "{}", "-"}


@dataclass(frozen=True)
class Parsed:
    """A reply that can be acted on."""

    fields: dict[str, str]
    """The texts before the action by their names; those that the reply lacks are absent."""
    action: str
    """The name in the registry."""
    input: dict[str, Any]
    """The arguments, complete and of their types."""
    notes: tuple[str, ...] = ()
    """What was repaired, dropped or missing, one sentence each."""


class MalformedReply(Exception):  # noqa: N818 - it is a reply, not an error of ours
    """A reply that cannot be acted on."""

    def __init__(self, text: str, fields: Mapping[str, str] | None = None) -> None:
        """Create the error.

        Args:
            text: what was wrong and how it should be, for the model.
            fields: the texts that could be read all the same.
        """
        super().__init__(text)
        self.text = text
        self.fields = dict(fields or {})


def parse(reply: str, actions: Mapping[str, Action] = ACTIONS) -> Parsed:
    """Parse a reply in the text format.

    Raises:
        MalformedReply: if there is no action in it that can be run.
    """
    return _Parser(reply.replace("\r\n", "\n"), actions).parse()


def parse_input(action: Action, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parse the input of an action, such as the arguments of a native tool call; return it and what was repaired.

    Raises:
        MalformedReply: if it is wrong.
    """
    try:
        arguments, _end, notes = _read_input(action, text, 0, len(text))
        return action.check(arguments), tuple(notes)
    except (JsonError, InputError) as error:
        raise MalformedReply(_input_error(action, error)) from None


def parse_fields(text: str) -> dict[str, str]:
    """Return the texts of a reply that has no action in it, such as the words beside a native tool call."""
    parser = _Parser(text.replace("\r\n", "\n"), {})
    parser.parse_texts()
    return parser.fields


def plain(text: str) -> str:
    """Return a field without the double asterisks and fences of its step, for the history."""
    lines = (line for line in text.split("\n") if not line.strip().startswith("```"))
    return "\n".join(lines).replace("**", "").strip()


@dataclass
class _Parser:
    text: str
    actions: Mapping[str, Action]
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    dropped: bool = False

    def parse(self) -> Parsed:
        action: Action | None = None
        arguments: dict[str, Any] | None = None
        at = 0
        while heading := _HEADING.search(self.text, at):
            name, at = _heading_name(heading), heading.end()
            if name == _OBSERVATION:
                self.dropped = True
                break
            if name in _TEXTS:
                at = self._take_text(name, at, past_actions=action is None)
            elif name == _INPUT:
                if arguments is not None:
                    break
                arguments, at = self._take_input(action, at)
            elif action is not None:
                break
            else:
                action, inline = self._take_action(at)
                at = self._line_end(at) if inline is None else inline
                if action is not None and inline is not None:
                    arguments, at = self._take_input(action, inline)
        return self._result(action, arguments, self.text[at:])

    def parse_texts(self) -> None:
        at = 0
        while (heading := _HEADING.search(self.text, at)) and (name := _heading_name(heading)) in _TEXTS:
            at = self._take_text(name, heading.end(), past_actions=False)

    def _result(self, action: Action | None, values: dict[str, Any] | None, rest: str) -> Parsed:
        if action is None:
            self._fail(self._no_action())
        if values is None:
            if any(argument.required for argument in action.arguments):
                self._fail(f'After "Action: {action.name}" there is no "Action Input:" with its arguments.', action)
            values = {}
        try:
            arguments = action.check(values)
        except InputError as error:
            self._fail(_input_error(action, error))
        if self.dropped:
            self.notes.append("An Observation that you wrote yourself, and all after it, was dropped.")
        elif rest.strip("`~ \n\t*"):
            self.notes.append("Only the first action was taken; what came after its input was dropped.")
        if missing := [name for name in _TEXTS if name not in self.fields]:
            self.notes.append(f"The reply had no {' and no '.join(missing)}.")
        return Parsed(self.fields, action.name, arguments, tuple(self.notes))

    def _no_action(self) -> str:
        if not self.text.strip():
            return "The reply was empty."
        if self.dropped:
            return 'The reply has no "Action:" before the Observation, which is not yours to write.'
        return 'The reply has no line that begins with "Action:" and names an action.'

    def _take_text(self, name: str, at: int, *, past_actions: bool) -> int:
        """Take the text of a field, if it is the first one of that name; return where it ends."""
        end = at
        while True:
            heading = _HEADING.search(self.text, end)
            end = heading.start() if heading else len(self.text)
            if heading and past_actions and _heading_name(heading) == _ACTION and self._is_prose(heading):
                end = heading.end()
                continue
            break
        self.fields.setdefault(name, self.text[at:end].strip())
        return end

    def _is_prose(self, heading: re.Match[str]) -> bool:
        """Tell whether an Action heading is only a line of a text: it names no action, and no input follows."""
        action, _inline = self._read_action_name(heading.end())
        next_heading = _HEADING.search(self.text, heading.end())
        return action is None and not (next_heading and _heading_name(next_heading) == _INPUT)

    def _take_action(self, at: int) -> tuple[Action | None, int | None]:
        """Return the action named here, and where its input begins if that comes without a heading."""
        action, inline = self._read_action_name(at)
        if action is None:
            next_heading = _HEADING.search(self.text, at)
            if next_heading and _heading_name(next_heading) == _INPUT:
                line = self.text[at : next_heading.start()].strip() or "nothing"
                self._fail(f"There is no action {line[:80]!r}. The actions are: {', '.join(self.actions)}.")
        return action, inline

    def _read_action_name(self, at: int) -> tuple[Action | None, int | None]:
        heading = _HEADING.search(self.text, at)
        end = heading.start() if heading else len(self.text)
        brace = self.text.find("{", at, end)
        before = self.text[at : brace if brace >= 0 else end].strip("`~ \n\t*")
        name = before.split("\n")[0].split("(")[0] if before else ""
        action = find(name, self.actions) or find(before.split("\n")[0], self.actions)
        only_name = (
            not _FENCE_END.sub("", before.removeprefix(before.split("\n")[0])).replace("json", "").strip("`~ \n")
        )
        return action, brace if action and brace >= 0 and only_name else None

    def _take_input(self, action: Action | None, at: int) -> tuple[dict[str, Any], int]:
        heading = _HEADING.search(self.text, at)
        end = heading.start() if heading else len(self.text)
        try:
            arguments, after, notes = _read_input(action, self.text, at, end)
        except JsonError as error:
            self._fail(_input_error(action, error))
        self.notes += notes
        return arguments, after

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def _fail(self, problem: str, action: Action | None = None) -> NoReturn:
        if "\n\nUsage:" in problem:
            raise MalformedReply(problem, self.fields)
        usage = f"Usage:\n{action.usage}" if action else f"A reply has these fields, in this order:\n{_FORMAT}"
        raise MalformedReply(f"{problem}\n\n{usage}", self.fields)


_FORMAT = "\n".join(f"{name}: ..." for name in FIELDS)


def _heading_name(heading: re.Match[str]) -> str:
    return _NAMES[re.sub(r"[ _&]|and", "", heading[1].lower())]


def _read_input(action: Action | None, text: str, start: int, end: int) -> tuple[dict[str, Any], int, list[str]]:
    """Read the input from ``start`` to ``end``; an object may go on after ``end``, as its strings may have headings."""
    fence = _FENCE.match(text, start, end)
    begin = fence.end() if fence else start
    brace = text.find("{", begin, end)
    words = text[begin : brace if brace >= 0 else end].strip()
    # words before the first brace may introduce the input, but not be a value themselves
    if brace >= 0 and not words.startswith(("[", '"')):
        arguments, after, notes = read_object(text, brace)
        notes = [f"In the input {note}." for note in notes]
        closing = _FENCE_END.match(text, after)
        return arguments, closing.end() if fence and closing else after, notes
    words = text[begin:end].strip("` \n\t")
    if words.lower() in _NO_INPUT:
        return {}, end, []
    required = [argument for argument in action.arguments if argument.required] if action else []
    if len(required) == 1 and "\n" not in words and '"' not in words.strip('"') and "{" not in words:
        note = f'The input was no JSON object and was taken for "{required[0].name}".'
        return {required[0].name: words.strip('"')}, end, [note]
    raise JsonError(f"the input must be a JSON object, which begins with {{, not {words[:40]!r}")


def _input_error(action: Action | None, error: Exception) -> str:
    owner = f" of {action.name}" if action else ""
    usage = action.usage if action else "Action: [name]\nAction Input: [its arguments as a JSON object]"
    return f"The Action Input{owner} cannot be used: {error}.\n\nUsage:\n{usage}"
