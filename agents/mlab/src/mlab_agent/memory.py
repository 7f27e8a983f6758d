"""What the model is reminded of: the last steps word for word, and of the older ones what bears on the present.

Steps that get old are folded, several at a time, into the :class:`~mlab_agent.research_log.ResearchLog`; between
foldings the conversation only grows at its end, which lets servers reuse what they computed for its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mlab_agent.cutting import cut_middle
from mlab_agent.research_log import ResearchLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlab_agent.models import Message
    from mlab_agent.research_log import Entry
    from mlab_agent.steps import Malformed, Step

__all__ = ["Memory", "MemoryLimits"]


@dataclass(frozen=True)
class MemoryLimits:
    """How much is remembered. Characters."""

    recent_steps: int = 8
    """Steps that always stay word for word, as far as the context allows; twice as many make the older half fold."""
    log_chars: int = 60_000
    retrieved_chars: int = 6_000
    summary_chars: int = 800
    """What one step's entry should not exceed."""


@dataclass
class Memory:
    """The steps so far, in two forms."""

    limits: MemoryLimits = field(default_factory=MemoryLimits)
    recent: list[Step] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    """Replies since the last step that were none; forgotten after the next step."""
    plan: str | None = None
    """The last Research Plan and Status that was stated."""
    log: ResearchLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = ResearchLog(self.limits.log_chars)

    def add(self, step: Step) -> None:
        """Append a step."""
        self.recent.append(step)
        self.malformed.clear()
        self.plan = step.plan or self.plan

    def to_fold(self) -> list[Step]:
        """Return the steps that are to be folded now, because they are many; maybe none."""
        enough = max(self.limits.recent_steps, 1)
        return self.recent[:-enough] if len(self.recent) >= 2 * enough else []

    def fold(self, entries: Sequence[Entry]) -> None:
        """Put entries in the place of the oldest steps."""
        for entry in entries:
            self.log.add(entry)
        last = entries[-1].last
        self.recent = [step for step in self.recent if step.number > last]

    def messages(self, observation_chars: int | None = None) -> list[Message]:
        """Return the conversation, of the recent steps and what was malformed since; observations cut if it must be."""
        recent = self.recent
        if observation_chars is not None:
            recent = [_shortened(step, observation_chars) for step in recent]
        parts: list[Step | Malformed] = [*recent, *self.malformed]
        return [message for part in parts for message in part.messages()]

    def reminder(self) -> str:
        """Return what stands beside the conversation: entries of the log, and the plan if it is out of sight."""
        parts = []
        if self.plan and not any(step.plan for step in self.recent):
            parts.append(f"Your last Research Plan and Status, from an older step:\n{self.plan}")
        if self.log.entries:
            chosen = self.log.relevant(self._question(), self.limits.retrieved_chars)
            shown = "\n".join(f"{entry.title}: {entry.text}" for entry in chosen)
            known = f"Your research log has {len(self.log.entries)} entries on steps 1 to {self.log.entries[-1].last}"
            parts.append(f"{known}; those that bear on the present:\n{shown or '(none of them)'}")
        return "\n\n".join(parts)

    def _question(self) -> str:
        if not self.recent:
            return self.plan or ""
        last = self.recent[-1]
        written = " ".join(str(value)[:300] for value in last.input.values())
        return " ".join(
            (self.plan or "", last.fields.get("Thought", ""), last.action, written, last.observation[:1500])
        )


def _shortened(step: Step, chars: int) -> Step:
    values = {key: cut_middle(value, chars) if isinstance(value, str) else value for key, value in step.input.items()}
    fields = {key: cut_middle(value, chars) for key, value in step.fields.items()}
    return replace(step, observation=cut_middle(step.observation, chars), input=values, fields=fields)
