"""One step of a run, and how it stands in the conversation with the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mlab_agent.models import Message, ToolCall, assistant, tool_result, user

__all__ = ["OBSERVATION", "PLAN", "Malformed", "Step", "render_fields"]

PLAN = "Research Plan and Status"
OBSERVATION = "Observation:\n"


@dataclass(frozen=True)
class Malformed:
    """A reply that was no step, and what the model was told of it."""

    reply: str
    complaint: str

    def messages(self) -> list[Message]:
        """Return the exchange: the reply itself, shown back, and what was wrong with it."""
        return [assistant(self.reply or "(an empty reply)"), user(OBSERVATION + self.complaint)]


@dataclass(frozen=True)
class Step:
    """One action that was carried out."""

    number: int
    fields: dict[str, str]
    action: str
    input: dict[str, Any]
    observation: str
    tool: str | None = None
    """The name under which it was called natively; None in the text format."""

    def messages(self) -> list[Message]:
        """Return the exchange in the form in which the model made its move."""
        if self.tool is None:
            return [assistant(self.text), user(OBSERVATION + self.observation)]
        call_id = f"step_{self.number}"
        call = ToolCall(self.tool, json.dumps(self.input, ensure_ascii=False))
        return [assistant(render_fields(self.fields), call, call_id), tool_result(self.observation, call_id)]

    @property
    def text(self) -> str:
        """The reply as the text format has it."""
        written = json.dumps(self.input, ensure_ascii=False)
        return f"{render_fields(self.fields)}\nAction: {self.action}\nAction Input: {written}".lstrip()

    @property
    def plan(self) -> str | None:
        """Research Plan and Status, if the step states it."""
        return self.fields.get(PLAN) or None


def render_fields(fields: dict[str, str]) -> str:
    """Return fields as the format has them, a line or more each."""
    return "\n".join(f"{name}: {text}" for name, text in fields.items())
