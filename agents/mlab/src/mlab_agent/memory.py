"""What the model is reminded of: the last steps word for word, and a summary of the older ones.

Old steps are summarised several at a time; between two such times the conversation only grows at its end, which lets
servers reuse what they computed for its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mlab_agent.models import user
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mlab_agent.models import Message

PLAN = "Research Plan and Status"
_OBSERVATION = "Observation:\n"


@dataclass(frozen=True)
class RejectedReply:
    """A reply that could not be acted on, and what the model was told about it."""

    reply: str
    complaint: str

    def messages(self) -> list[Message]:
        """Return the exchange: the reply itself, and what was wrong with it."""
        reply = {"role": "assistant", "content": self.reply or "(an empty reply)"}
        return [reply, user(_OBSERVATION + self.complaint)]


@dataclass(frozen=True)
class Step:
    """One action that was carried out."""

    number: int
    fields: dict[str, str]
    action: str
    input: dict[str, Any]
    observation: str
    tool: str | None = None
    """The name of the native tool that was called; None in the text format."""

    def messages(self) -> list[Message]:
        """Return the exchange in the form in which the model wrote its action."""
        if self.tool is None:
            return [{"role": "assistant", "content": self.text}, user(_OBSERVATION + self.observation)]
        call_id = f"step_{self.number}"
        function = {"name": self.tool, "arguments": json.dumps(self.input, ensure_ascii=False)}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": self._fields_text, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": self.observation},
        ]

    @property
    def text(self) -> str:
        """The reply in the text format."""
        arguments = json.dumps(self.input, ensure_ascii=False)
        return f"{self._fields_text}\nAction: {self.action}\nAction Input: {arguments}".lstrip()

    @property
    def _fields_text(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self.fields.items())

    def truncated(self, chars: int) -> Step:
        """Return the step with at most about so many characters of each of its texts."""
        arguments = {
            name: truncate_middle(value, chars) if isinstance(value, str) else value
            for name, value in self.input.items()
        }
        fields = {name: truncate_middle(text, chars) for name, text in self.fields.items()}
        return replace(self, observation=truncate_middle(self.observation, chars), input=arguments, fields=fields)


@dataclass(frozen=True)
class MemoryLimits:
    """How much is remembered."""

    recent_steps: int = 8
    """Steps that stay word for word, as far as the context allows; at twice as many, the older half is summarised."""
    log_chars: int = 12_000
    """The longest summary of the older steps."""


@dataclass
class Memory:
    """The steps so far: the recent ones, and the research log, a summary of the older ones."""

    limits: MemoryLimits = field(default_factory=MemoryLimits)
    recent: list[Step] = field(default_factory=list)
    rejected: list[RejectedReply] = field(default_factory=list)
    """Replies since the last step that could not be acted on; forgotten after the next step."""
    plan: str | None = None
    """The last Research Plan and Status that was stated."""
    log: list[str] = field(default_factory=list)
    """The summary, in one piece; runs of older versions have one for each step."""
    summarised: int = 0
    """The number of the last step that is in the log alone."""

    def add(self, step: Step) -> None:
        """Append a step."""
        self.recent.append(step)
        self.rejected.clear()
        self.plan = step.fields.get(PLAN) or self.plan

    def steps_to_summarise(self) -> list[Step]:
        """Return the steps that are to be summarised now, because there are many; may be empty."""
        kept = max(self.limits.recent_steps, 1)
        return self.recent[:-kept] if len(self.recent) >= 2 * kept else []

    def fold(self, event: Mapping[str, Any]) -> None:
        """Replace the oldest steps by an event's entries of the log; a ``whole`` log replaces the one before."""
        entries = event["entries"]
        if event.get("whole"):
            self.log.clear()
        self.log += [entry["text"] for entry in entries]
        self.summarised = entries[-1]["last"]
        self.recent = [step for step in self.recent if step.number > self.summarised]

    def condense(self, count: int, text: str) -> None:
        """Replace the oldest entries of the log by one, as runs of older versions did."""
        self.log[:count] = [text]

    @property
    def log_text(self) -> str:
        """The log, within its limit."""
        return truncate_middle("\n".join(self.log), self.limits.log_chars)

    def messages(self, chars: int | None = None) -> list[Message]:
        """Return the recent steps and the rejected replies as messages, the texts of steps truncated if asked for."""
        recent = self.recent if chars is None else [step.truncated(chars) for step in self.recent]
        exchanges: list[Step | RejectedReply] = [*recent, *self.rejected]
        return [message for exchange in exchanges for message in exchange.messages()]

    def reminder(self) -> str:
        """Return what is added to the conversation: the log, and the plan if no recent step states it."""
        parts = []
        if self.plan and not any(step.fields.get(PLAN) for step in self.recent):
            parts.append(f"Your last Research Plan and Status, from an older step:\n{self.plan}")
        if self.log:
            parts.append(f"Your research log on steps 1 to {self.summarised}:\n{self.log_text}")
        return "\n\n".join(parts)
