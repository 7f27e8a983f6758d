"""A conversation as the stand-in model reads it: which problem it states, in which words it asks, what it shows."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from re_bench_gateway.standin.source import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench_gateway.standin.problems import Problem, Program

__all__ = ["Conversation", "Recogniser", "Stated", "words"]

_WORD = re.compile(r"[a-z0-9]+")
_WIDTH = 3
_SHARE = 0.45
"""Of a statement's shingles: half of its words, less the shingles that cuts and small changes break."""
_PROGRAM = re.compile(r"^\s*(?:pub )?fn main\b", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def words(text: str) -> list[str]:
    """Return the words of a text, in small letters, without punctuation."""
    return _WORD.findall(text.lower())


def _shingles(text: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(text[start : start + _WIDTH]) for start in range(max(1, len(text) - _WIDTH + 1))]


@dataclass(frozen=True)
class Conversation:
    """The messages of a request."""

    messages: Sequence[Mapping[str, Any]]

    @cached_property
    def text(self) -> str:
        """What was written in all messages."""
        return "\n\n".join(_content(message) for message in self.messages)

    @cached_property
    def last(self) -> str:
        """What was written in the last message, without the programs that it shows."""
        content = _content(self.messages[-1]) if self.messages else ""
        return _FENCED.sub(lambda block: "" if _PROGRAM.search(block[1]) else block[0], content)

    @cached_property
    def identity(self) -> str:
        """The same for exactly the same messages."""
        return json.dumps([[message.get("role"), _content(message)] for message in self.messages])

    def shown(self, problem: Problem) -> Program | None:
        """Return the program of the problem's pool that is shown last, whatever its comments and layout."""
        text = canonical(self.text)
        starts = {program: text.rfind(program.canonical) for program in problem.programs}
        found = [program for program, start in starts.items() if start >= 0]
        # A program that lacks an import may be the end of one that has it: of those that end last, the longest counts.
        ends = {program: (starts[program] + len(program.canonical), len(program.canonical)) for program in found}
        return max(found, key=lambda program: ends[program], default=None)


@dataclass(frozen=True)
class Stated:
    """What a conversation states.

    Attributes:
        problem: the problem that is stated last, or None.
        wishes: all words of the user's and system's messages that belong to no statement, parted by single spaces.
        remark: such words of the last message, but for the programs that it shows.
    """

    problem: Problem | None
    wishes: str
    remark: str


class Recogniser:
    """Recognises problems by runs of words of their statements."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = tuple(problems)
        self._sizes: list[int] = []
        self._where: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, problem in enumerate(self._problems):
            shingles = set(_shingles(words(problem.statement)))
            self._sizes.append(len(shingles))
            for shingle in shingles:
                self._where[shingle].append(number)

    def stated(self, conversation: Conversation) -> Stated:
        """Find the problem of which at least half of the statement is there; if several, the last one."""
        found: dict[int, dict[tuple[str, ...], int]] = defaultdict(dict)
        everything = words(conversation.text)
        for place, shingle in enumerate(_shingles(everything)):
            for number in self._where.get(shingle, ()):
                found[number][shingle] = place
        there = [number for number, places in found.items() if len(places) >= _SHARE * self._sizes[number]]
        own = [_content(message) for message in conversation.messages if message.get("role") != "assistant"]
        wishes, remark = (self._unstated(text, frozenset(there)) for text in ("\n".join(own), conversation.last))
        if not there:
            return Stated(None, wishes, remark)
        last = max(there, key=lambda number: (median(found[number].values()), len(found[number])))
        return Stated(self._problems[last], wishes, remark)

    def _unstated(self, text: str, there: frozenset[int]) -> str:
        """Return the words of a text that do not come from the statements of some problems."""
        every = words(text)
        covered = set[int]()
        for place, shingle in enumerate(_shingles(every)):
            if not there.isdisjoint(self._where.get(shingle, ())):
                covered.update(range(place, place + _WIDTH))
        return " ".join(word for place, word in enumerate(every) if place not in covered)


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""
