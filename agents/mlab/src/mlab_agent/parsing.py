"""Reading a reply of the model: its fields, the first action, and that action's input.

Headings count at the beginning of a line only, and not within the input. What comes after the first action, and an
Observation that the model made up, is dropped. What is repaired is said; what cannot be read is answered with exactly
what was wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from mlab_agent.actions import ACTIONS, Action, InputError, find
from mlab_agent.loose_json import LooseError, read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FIELDS", "MalformedReply", "Parsed", "parse", "parse_fields", "parse_input", "plain"]

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
_EMPTY = {"", "none", "null", "n/a", "{}", "-"}


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


class MalformedReply(Exception):  # noqa: N818 - it is a reply, not a failure of ours
    """A reply that cannot be acted on."""

    def __init__(self, text: str, fields: Mapping[str, str] | None = None) -> None:
        """Say what was wrong and how it should be.

        Args:
            text: the observation.
            fields: the texts that could be read all the same.
        """
        super().__init__(text)
        self.text = text
        self.fields = dict(fields or {})


def parse(reply: str, actions: Mapping[str, Action] = ACTIONS) -> Parsed:
    """Read a reply in the text format.

    Raises:
        MalformedReply: if there is no action in it that can be run.
    """
    return _Reply(reply.replace("\r\n", "\n"), actions).parsed()


def parse_input(action: Action, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the input of an action, such as the arguments of a native tool call; return it and what was repaired.

    Raises:
        MalformedReply: if it is wrong.
    """
    try:
        given, _end, notes = _read(action, text, 0, len(text))
        return action.check(given), tuple(notes)
    except (LooseError, InputError) as error:
        raise MalformedReply(_wrong_input(action, error)) from None


def parse_fields(text: str) -> dict[str, str]:
    """Return the texts of a reply that has no action in it, such as the words beside a native tool call."""
    reply = _Reply(text.replace("\r\n", "\n"), {})
    reply.scan_texts()
    return reply.fields


def plain(text: str) -> str:
    """Return a field without the double asterisks and fences of its step, for the history."""
    lines = (line for line in text.split("\n") if not line.strip().startswith("```"))
    return "\n".join(lines).replace("**", "").strip()


@dataclass
class _Reply:
    text: str
    actions: Mapping[str, Action]
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    dropped: bool = False

    def parsed(self) -> Parsed:
        action: Action | None = None
        given: dict[str, Any] | None = None
        at = 0
        while heading := _HEADING.search(self.text, at):
            name, at = _named(heading), heading.end()
            if name == _OBSERVATION:
                self.dropped = True
                break
            if name in _TEXTS:
                at = self._take(name, at, past_actions=action is None)
            elif name == _INPUT:
                if given is not None:
                    break
                given, at = self._input(action, at)
            elif action is not None:
                break
            else:
                action, inline = self._action(at)
                at = self._line_end(at) if inline is None else inline
                if action is not None and inline is not None:
                    given, at = self._input(action, inline)
        return self._whole(action, given, self.text[at:])

    def scan_texts(self) -> None:
        at = 0
        while (heading := _HEADING.search(self.text, at)) and (name := _named(heading)) in _TEXTS:
            at = self._take(name, heading.end(), past_actions=False)

    def _whole(self, action: Action | None, given: dict[str, Any] | None, rest: str) -> Parsed:
        if action is None:
            self._fail(self._no_action())
        if given is None:
            if any(each.required for each in action.arguments):
                self._fail(f'After "Action: {action.name}" there is no "Action Input:" with its arguments.', action)
            given = {}
        try:
            arguments = action.check(given)
        except InputError as error:
            self._fail(_wrong_input(action, error))
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

    def _take(self, name: str, at: int, *, past_actions: bool) -> int:
        """Keep the text of a field, if it is the first one of that name; return where it ends."""
        end = at
        while True:
            heading = _HEADING.search(self.text, end)
            end = heading.start() if heading else len(self.text)
            if heading and past_actions and _named(heading) == _ACTION and self._is_prose(heading):
                end = heading.end()
                continue
            break
        self.fields.setdefault(name, self.text[at:end].strip())
        return end

    def _is_prose(self, heading: re.Match[str]) -> bool:
        """Tell whether an Action heading is only a line of a text: it names no action, and no input follows."""
        action, _inline = self._read_name(heading.end())
        following = _HEADING.search(self.text, heading.end())
        return action is None and not (following and _named(following) == _INPUT)

    def _action(self, at: int) -> tuple[Action | None, int | None]:
        """Return the action named here, and where its input begins if that comes without a heading."""
        action, inline = self._read_name(at)
        if action is None:
            following = _HEADING.search(self.text, at)
            if following and _named(following) == _INPUT:
                line = self.text[at : following.start()].strip() or "nothing"
                self._fail(f"There is no action {line[:80]!r}. The actions are: {', '.join(self.actions)}.")
        return action, inline

    def _read_name(self, at: int) -> tuple[Action | None, int | None]:
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

    def _input(self, action: Action | None, at: int) -> tuple[dict[str, Any], int]:
        heading = _HEADING.search(self.text, at)
        end = heading.start() if heading else len(self.text)
        try:
            given, after, notes = _read(action, self.text, at, end)
        except LooseError as error:
            self._fail(_wrong_input(action, error))
        self.notes += notes
        return given, after

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def _fail(self, what: str, action: Action | None = None) -> NoReturn:
        if "\n\nUsage:" in what:
            raise MalformedReply(what, self.fields)
        usage = f"Usage:\n{action.usage}" if action else f"A reply has these fields, in this order:\n{_FORMAT}"
        raise MalformedReply(f"{what}\n\n{usage}", self.fields)


_FORMAT = "\n".join(f"{name}: ..." for name in FIELDS)


def _named(heading: re.Match[str]) -> str:
    return _NAMES[re.sub(r"[ _&]|and", "", heading[1].lower())]


def _read(action: Action | None, text: str, start: int, end: int) -> tuple[dict[str, Any], int, list[str]]:
    """Read the input between ``start`` and, unless it is an object, ``end``; an object may hold lines like headings."""
    fence = _FENCE.match(text, start, end)
    begin = fence.end() if fence else start
    brace = text.find("{", begin, end)
    words = text[begin : brace if brace >= 0 else end].strip()
    if brace >= 0 and not _holds_value(words):
        given, after, notes = read_object(text, brace)
        notes = [f"In the input {note}." for note in notes]
        closing = _FENCE_END.match(text, after)
        return given, closing.end() if fence and closing else after, notes
    words = text[begin:end].strip("` \n\t")
    if words.lower() in _EMPTY:
        return {}, end, []
    required = [each for each in action.arguments if each.required] if action else []
    if len(required) == 1 and "\n" not in words and '"' not in words.strip('"') and "{" not in words:
        note = f'The input was no JSON object and was taken for "{required[0].name}".'
        return {required[0].name: words.strip('"')}, end, [note]
    raise LooseError(f"the input must be a JSON object, which begins with {{, not {words[:40]!r}")


def _holds_value(words: str) -> bool:
    """Tell whether what stands before the first brace is a value itself, rather than words about the input."""
    return words.startswith(("[", '"'))


def _wrong_input(action: Action | None, error: Exception) -> str:
    of = f" of {action.name}" if action else ""
    usage = action.usage if action else "Action: [name]\nAction Input: [its arguments as a JSON object]"
    return f"The Action Input{of} cannot be used: {error}.\n\nUsage:\n{usage}"
