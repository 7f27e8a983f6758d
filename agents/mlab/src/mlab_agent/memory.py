"""What the model is reminded of: the last steps word for word, and of the older ones what is relevant now.

Old steps are summarised, several at a time, into the research log; between two such times the conversation only grows
at its end, which lets servers reuse what they computed for its beginning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mlab_agent.models import Message, ToolCall, assistant, tool_result, user
from mlab_agent.retrieval import Index
from mlab_agent.truncate import truncate_middle

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN = "Research Plan and Status"
_OBSERVATION = "Observation:\n"


@dataclass(frozen=True)
class RejectedReply:
    """A reply that could not be acted on, and what the model was told about it."""

    reply: str
    complaint: str

    def messages(self) -> list[Message]:
        """Return the exchange: the reply itself, and what was wrong with it."""
        return [assistant(self.reply or "(an empty reply)"), user(_OBSERVATION + self.complaint)]


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
            return [assistant(self.text), user(_OBSERVATION + self.observation)]
        call_id = f"step_{self.number}"
        call = ToolCall(self.tool, json.dumps(self.input, ensure_ascii=False))
        return [assistant(self._fields_text, call, call_id), tool_result(self.observation, call_id)]

    @property
    def text(self) -> str:
        """The reply in the text format."""
        arguments = json.dumps(self.input, ensure_ascii=False)
        return f"{self._fields_text}\nAction: {self.action}\nAction Input: {arguments}".lstrip()

    @property
    def plan(self) -> str | None:
        """Research Plan and Status, if the step states it."""
        return self.fields.get(PLAN) or None

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
class LogEntry:
    """The summary of one step, or of several together."""

    first: int
    last: int
    text: str

    @property
    def title(self) -> str:
        """Which steps it is about."""
        return f"Step {self.first}" if self.first == self.last else f"Steps {self.first} to {self.last}"

    def record(self) -> dict[str, Any]:
        """Return the entry as it is written to the trace."""
        return {"first": self.first, "last": self.last, "text": self.text}


@dataclass
class ResearchLog:
    """Summaries of older steps, in order and in about ``limit`` characters, with a search that needs no model."""

    limit: int
    entries: list[LogEntry] = field(default_factory=list)
    _index: Index = field(default_factory=Index, init=False, repr=False)

    def __post_init__(self) -> None:
        self._index = Index(entry.text for entry in self.entries)

    @property
    def size(self) -> int:
        """Characters of all entries."""
        return sum(len(entry.text) for entry in self.entries)

    @property
    def is_full(self) -> bool:
        """Whether the oldest entries should be condensed."""
        return self.size > self.limit

    def add(self, entry: LogEntry) -> None:
        """Append an entry; one that is longer than a quarter of the log is truncated."""
        self.entries.append(replace(entry, text=truncate_middle(entry.text, self._entry_limit)))
        self._index.add(self.entries[-1].text)

    def oldest_half(self) -> list[LogEntry]:
        """Return the oldest entries that make up at least half of the log, two at least where there are two."""
        size, half = 0, self.size / 2
        for count, entry in enumerate(self.entries, 1):
            size += len(entry.text)
            if size >= half and count > 1:
                return self.entries[:count]
        return list(self.entries)

    def condense(self, count: int, text: str) -> None:
        """Replace the oldest ``count`` entries by one, no longer than a quarter of the log."""
        replaced, self.entries = self.entries[:count], self.entries[count:]
        entry = LogEntry(replaced[0].first, replaced[-1].last, truncate_middle(text, self._entry_limit))
        self.entries.insert(0, entry)
        self._index = Index(entry.text for entry in self.entries)

    def relevant(self, query: str, limit: int) -> list[LogEntry]:
        """Return the entries most relevant to a query, together at most ``limit`` characters, in order of steps."""
        scores = self._index.scores(query)
        chosen: list[int] = []
        left = limit
        for index in sorted(range(len(scores)), key=lambda index: (-scores[index], -index)):
            if scores[index] > 0 and len(self.entries[index].text) <= left:
                chosen.append(index)
                left -= len(self.entries[index].text)
        return [self.entries[index] for index in sorted(chosen)]

    @property
    def _entry_limit(self) -> int:
        return max(self.limit // 4, 200)


@dataclass(frozen=True)
class MemoryLimits:
    """How much is remembered, in characters unless stated otherwise."""

    recent_steps: int = 8
    """Steps that always stay word for word, as far as the context allows; at twice as many, the older half is
    summarised."""
    log_chars: int = 60_000
    retrieved_chars: int = 6_000
    summary_chars: int = 800
    """What the summary of one step should not exceed."""


@dataclass
class Memory:
    """The steps so far: the recent ones, and the research log of the older ones."""

    limits: MemoryLimits = field(default_factory=MemoryLimits)
    recent: list[Step] = field(default_factory=list)
    rejected: list[RejectedReply] = field(default_factory=list)
    """Replies since the last step that could not be acted on; forgotten after the next step."""
    plan: str | None = None
    """The last Research Plan and Status that was stated."""
    log: ResearchLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = ResearchLog(self.limits.log_chars)

    def add(self, step: Step) -> None:
        """Append a step."""
        self.recent.append(step)
        self.rejected.clear()
        self.plan = step.plan or self.plan

    def steps_to_summarise(self) -> list[Step]:
        """Return the steps that are to be summarised now, because there are many; may be empty."""
        kept = max(self.limits.recent_steps, 1)
        return self.recent[:-kept] if len(self.recent) >= 2 * kept else []

    def replace_oldest(self, entries: Sequence[LogEntry]) -> None:
        """Replace the oldest steps by their entries in the log."""
        for entry in entries:
            self.log.add(entry)
        last = entries[-1].last
        self.recent = [step for step in self.recent if step.number > last]

    def messages(self, chars: int | None = None) -> list[Message]:
        """Return the recent steps and the rejected replies as messages, the texts of steps truncated if asked for."""
        recent = self.recent if chars is None else [step.truncated(chars) for step in self.recent]
        exchanges: list[Step | RejectedReply] = [*recent, *self.rejected]
        return [message for exchange in exchanges for message in exchange.messages()]

    def reminder(self) -> str:
        """Return what is added to the conversation: relevant entries, and the plan if no recent step states it."""
        parts = []
        if self.plan and not any(step.plan for step in self.recent):
            parts.append(f"Your last Research Plan and Status, from an older step:\n{self.plan}")
        if self.log.entries:
            chosen = self.log.relevant(self._query(), self.limits.retrieved_chars)
            entries = "\n".join(f"{entry.title}: {entry.text}" for entry in chosen)
            head = f"Your research log has {len(self.log.entries)} entries on steps 1 to {self.log.entries[-1].last}"
            parts.append(f"{head}; those that bear on the present:\n{entries or '(none of them)'}")
        return "\n\n".join(parts)

    def _query(self) -> str:
        if not self.recent:
            return self.plan or ""
        last = self.recent[-1]
        arguments = " ".join(str(value)[:300] for value in last.input.values())
        return " ".join(
            (self.plan or "", last.fields.get("Thought", ""), last.action, arguments, last.observation[:1500])
        )
