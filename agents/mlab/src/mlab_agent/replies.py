"""Parse a reply of the model: its fields, the first action, and the input of that action.

The action is a native tool call, or text in the format of MLAgentBench. Headings are recognized only at the beginning
of a line. Everything after the first action is dropped, including an Observation that the model made up.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import json_repair

from mlab_agent.actions import ACTIONS, Action, InputError, find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.models import Reply

FIELDS = ("Reflection", "Research Plan and Status", "Fact Check", "Thought", "Action", "Action Input")
"""The fields of a reply, in order."""

_TEXTS = FIELDS[:4]
_HEADING = re.compile(
    r"^[ \t>#*_`-]*(Reflection|Research Plan (?:and|&) Status|Fact Check|Thought|Action[ _]Input|Action|Observation)"
    r"[*_`]*[ \t]*:[*_`]*[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
_AROUND = "`~*_ \n\t"
_FORMAT = "A reply has these fields, in this order:\n" + "\n".join(f"{name}: ..." for name in FIELDS)


class MalformedReply(Exception):  # noqa: N818 - it is a reply, not an internal error
    """A reply without a usable action; the message is for the model."""


@dataclass(frozen=True)
class Response:
    """A reply of the model, with its action or with an error message."""

    reply: Reply
    fields: dict[str, str]  # the texts before the action, by name
    action: str | None = None  # the name in the registry; None if the reply is malformed
    input: dict[str, Any] = field(default_factory=dict)  # the checked arguments
    notes: tuple[str, ...] = ()  # what was repaired, dropped or missing, one sentence each
    tool: str | None = None  # the name of the native tool that was called
    complaint: str = ""  # the error message for the model

    @property
    def tries_to_act(self) -> bool:
        """Whether the reply has an action, even a malformed one."""
        text = without_thoughts(self.reply.text)
        return self.reply.call is not None or any(item.name == "Action" for item in _headings(text))

    @property
    def text(self) -> str:
        """The reply as text without its thoughts, with its native tool call if it has one."""
        reply = replace(self.reply, text=without_thoughts(self.reply.text))
        call = f"\n[call] {reply.call.name}({reply.call.arguments})" if reply.call else ""
        return f"{reply.text}{call}".strip()


def read_response(reply: Reply, actions: Mapping[str, Action] = ACTIONS, *, native: bool = False) -> Response:
    """Parse a reply; ``native`` is true if a native tool call was expected."""
    text = without_thoughts(reply.text.replace("\r\n", "\n"))
    headings = _headings(text)
    fields: dict[str, str] = {}
    for index, heading in enumerate(_before_observation(headings)):
        if heading.name in _TEXTS:
            fields.setdefault(heading.name, text[heading.end : headings[index + 1].start].strip())
    try:
        if reply.call is not None:
            action, arguments, notes = _read_call(reply, actions)
        else:
            action, arguments, notes = _read_text(text, headings, actions, truncated=reply.truncated)
            notes += [f"The reply had no {name}." for name in _TEXTS if name not in fields]
        tool = reply.call.name if reply.call else None
        return Response(reply, fields, action.name, arguments, tuple(notes), tool)
    except MalformedReply as error:
        truncated = "The reply ended at its token limit; write less at a time.\n" if reply.truncated else ""
        advice = "\nEnd the reply with a call of exactly one tool." if native and reply.call is None else ""
        return Response(reply, fields, complaint=f"{truncated}{error}{advice}")


def without_thoughts(text: str) -> str:
    """Return a reply without the thoughts of a reasoning model before the answer.

    They end with ``</think>``, and begin with ``<think>`` unless the server's template has that in the prompt. Thoughts
    that were cut off have no answer. An action that a model only considers must not be carried out.
    """
    before, end, answer = text.partition(_THOUGHTS_END)
    if before.lstrip().startswith(_THOUGHTS):
        return without_thoughts(answer.lstrip())
    hidden_start = end and _THOUGHTS not in before and any(item.name == "Action" for item in _headings(answer))
    return answer.lstrip() if hidden_start else text


def plain(text: str) -> str:
    """Return the text of a field without double asterisks and code fences, for the agent's memory."""
    lines = (line for line in text.split("\n") if not line.strip().startswith("```"))
    return "\n".join(lines).replace("**", "").strip()


class _Heading(NamedTuple):
    name: str
    start: int
    end: int


def _headings(text: str) -> list[_Heading]:
    """Return the headings of a text, followed by one without a name at the end of the text."""
    names = {name.lower(): name for name in (*FIELDS, "Observation")}
    found = [
        _Heading(names[match[1].lower().replace("_", " ").replace("&", "and")], match.start(), match.end())
        for match in _HEADING.finditer(text)
    ]
    return [*found, _Heading("", len(text), len(text))]


def _before_observation(headings: list[_Heading]) -> list[_Heading]:
    names = [heading.name for heading in headings]
    return headings[: names.index("Observation" if "Observation" in names else "")]


def _read_call(reply: Reply, actions: Mapping[str, Action]) -> tuple[Action, dict[str, Any], list[str]]:
    assert reply.call is not None
    tools = {action.tool_name: action for action in actions.values()}
    action = tools.get(reply.call.name)
    if action is None:
        raise MalformedReply(f"There is no tool {reply.call.name!r}. The tools are: {', '.join(tools)}.")
    if reply.truncated:
        raise MalformedReply(f"The call of {action.tool_name} was cut off and was not carried out.")
    written = reply.call.arguments.strip() or "{}"
    arguments, _end, notes = _read_input(action, written, 0, len(written))
    return action, arguments, notes


def _read_text(
    text: str, headings: list[_Heading], actions: Mapping[str, Action], *, truncated: bool
) -> tuple[Action, dict[str, Any], list[str]]:
    unknown = ""
    for index, heading in enumerate(_before_observation(headings)):
        if heading.name != "Action":
            continue
        after, *later = headings[index + 1 :]
        line = text[heading.end : after.start].strip(_AROUND).split("\n")[0]
        action = find(line, actions)
        if action is None:
            unknown = unknown or (line if after.name == "Action Input" else "")
        elif after.name == "Action Input":
            end = next(item.start for item in later if item.name in {"Observation", "Action", "Thought", ""})
            arguments, end, notes = _read_input(action, text, after.end, end, truncated=truncated)
            if any(item.name == "Observation" for item in _headings(text[end:])):
                notes.append("An Observation that you wrote yourself, and all after it, was dropped.")
            elif text[end:].strip(_AROUND):
                notes.append("Only the first action was taken; the text after its input was dropped.")
            return action, arguments, notes
        elif action.needs_input:
            raise MalformedReply(_complaint(action, 'there is no "Action Input:" with its arguments'))
        else:
            return action, {}, []
    problem = 'The reply has no line that begins with "Action:" and names an action.'
    if unknown:
        problem = f"There is no action {unknown[:80]!r}. The actions are: {', '.join(actions)}."
    elif not text.strip():
        problem = "The reply was empty."
    raise MalformedReply(f"{problem}\n\n{_FORMAT}")


def _read_input(
    action: Action, text: str, start: int, end: int, *, truncated: bool = False
) -> tuple[dict[str, Any], int, list[str]]:
    """Parse the JSON object after ``start``. It may extend beyond ``end``, since its strings may contain headings.

    Invalid JSON is repaired unless it was cut off.

    Returns:
        The checked arguments, the position after the object, and notes for the model.
    """
    notes: list[str] = []
    values: Any = None
    if (brace := text.find("{", start, end)) >= 0:
        try:
            values, end = json.JSONDecoder(strict=False).raw_decode(text, brace)
        except ValueError as error:
            written = text[brace:end].rstrip(_AROUND)
            if truncated or not written.endswith("}"):
                problem = f"{error}; it has no end: was the reply cut off?"
                raise MalformedReply(_complaint(action, problem)) from None
            values = json_repair.loads(written, skip_json_loads=True)
            notes.append("The Action Input was not valid JSON and was repaired; check the result.")
    elif text[start:end].strip(_AROUND).lower() in {"", "none", "null", "n/a"}:
        values = {}
    if not isinstance(values, dict):
        raise MalformedReply(_complaint(action, "the input must be a JSON object, which begins with {"))
    try:
        json.dumps(values, ensure_ascii=False).encode()
        return action.check(values), end, notes
    except UnicodeEncodeError:
        raise MalformedReply(_complaint(action, r"a \u escape is half of a character")) from None
    except InputError as error:
        raise MalformedReply(_complaint(action, str(error))) from None


def _complaint(action: Action, problem: str) -> str:
    return f"The Action Input of {action.name} cannot be used: {problem}.\n\nUsage:\n{action.usage}"
