"""A reply of the model together with the action in it, or with what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlab_agent.reply_parser import MalformedReply, Parsed, parse, parse_fields, parse_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.actions import Action
    from mlab_agent.models import Reply, ToolCall

_ACTION_HEADING = re.compile(r"^\W*Action\W*:", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Response:
    """A reply of the model, parsed."""

    reply: Reply
    parsed: Parsed | None
    tool: str | None = None
    complaint: str = ""
    """Why it cannot be acted on, for the model."""

    @property
    def tries_to_act(self) -> bool:
        """Whether it has an action, even a malformed one."""
        return self.parsed is not None or self.reply.call is not None or bool(_ACTION_HEADING.search(self.reply.text))

    @property
    def text(self) -> str:
        """The reply as text, with its native tool call if it has one."""
        reply = self.reply
        call = f"\n[call] {reply.call.name}({reply.call.arguments})" if reply.call else ""
        return f"{reply.text}{call}".strip()


def read_response(reply: Reply, actions: Mapping[str, Action], *, native: bool) -> Response:
    """Parse a reply.

    Args:
        reply: of the model.
        actions: those that exist, by name.
        native: whether native tool calls were expected.
    """
    try:
        if reply.call is None:
            return Response(reply, parse(reply.text, actions))
        return _read_call(reply, reply.call, actions)
    except MalformedReply as error:
        truncated = "The reply ended at its token limit; write less at a time.\n" if reply.truncated else ""
        advice = "\nEnd the reply with a call of exactly one tool." if native and reply.call is None else ""
        return Response(reply, None, complaint=f"{truncated}{error.text}{advice}")


def _read_call(reply: Reply, call: ToolCall, actions: Mapping[str, Action]) -> Response:
    tools = {action.tool_name: action for action in actions.values()}
    action = tools.get(call.name)
    if action is None:
        raise MalformedReply(f"There is no tool {call.name!r}. The tools are: {', '.join(tools)}.")
    if reply.truncated:
        raise MalformedReply(f"The call of {call.name} was cut off and was not carried out.")
    arguments, notes = parse_input(action, call.arguments or "{}")
    return Response(reply, Parsed(parse_fields(reply.text), action.name, arguments, notes), tool=call.name)
