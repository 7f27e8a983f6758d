"""The research log: what older steps came to, in a bounded number of characters, found again by relevance.

Relevance is that of :mod:`~mlab_agent.retrieval`, and costs no call to a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlab_agent.cutting import cut_middle
from mlab_agent.retrieval import Index

__all__ = ["Entry", "ResearchLog"]


@dataclass(frozen=True)
class Entry:
    """What one step came to, or several together."""

    first: int
    last: int
    text: str

    @property
    def title(self) -> str:
        """Which steps it is about."""
        return f"Step {self.first}" if self.first == self.last else f"Steps {self.first} to {self.last}"

    def record(self) -> dict[str, Any]:
        """Return the entry as it stands in the trace."""
        return {"first": self.first, "last": self.last, "text": self.text}


@dataclass
class ResearchLog:
    """Entries in the order of their steps, never more than ``limit`` characters."""

    limit: int
    entries: list[Entry] = field(default_factory=list)
    _index: Index = field(default_factory=Index, init=False, repr=False)

    def __post_init__(self) -> None:
        self._index = Index(entry.text for entry in self.entries)

    @property
    def size(self) -> int:
        """Characters of all entries."""
        return sum(len(entry.text) for entry in self.entries)

    @property
    def full(self) -> bool:
        """Whether entries are to be condensed before long."""
        return self.size > self.limit

    def add(self, entry: Entry) -> None:
        """Append an entry; one that is longer than a quarter of the log is cut."""
        most = max(self.limit // 4, 200)
        if len(entry.text) > most:
            entry = Entry(entry.first, entry.last, cut_middle(entry.text, most))
        self.entries.append(entry)
        self._index.add(entry.text)

    def oldest_half(self) -> list[Entry]:
        """Return the oldest entries that make up at least half of the log, two at least where there are two."""
        size, half = 0, self.size / 2
        for count, entry in enumerate(self.entries, 1):
            size += len(entry.text)
            if size >= half and count > 1:
                return self.entries[:count]
        return list(self.entries)

    def condense(self, count: int, text: str) -> None:
        """Put one entry, no longer than a quarter of the log, in the place of the oldest ``count``."""
        replaced, self.entries = self.entries[:count], self.entries[count:]
        condensed = Entry(replaced[0].first, replaced[-1].last, cut_middle(text, max(self.limit // 4, 200)))
        self.entries.insert(0, condensed)
        self._index = Index(entry.text for entry in self.entries)

    def relevant(self, question: str, limit: int) -> list[Entry]:
        """Return the entries that bear most on a question, together at most ``limit`` characters, in order of steps."""
        scores = self._index.scores(question)
        chosen: list[int] = []
        left = limit
        for index in sorted(range(len(scores)), key=lambda each: (-scores[each], -each)):
            if scores[index] > 0 and len(self.entries[index].text) <= left:
                chosen.append(index)
                left -= len(self.entries[index].text)
        return [self.entries[index] for index in sorted(chosen)]
