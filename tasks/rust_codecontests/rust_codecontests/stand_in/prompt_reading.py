"""Read a conversation: the problem, the request, and a program that is shown.

Other wording is ignored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Any

from rust_codecontests.stand_in.problems import COMPILE_ERROR, canonical, words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rust_codecontests.stand_in.problems import Problem, Program

_WIDTH = 3
_SHARE = 0.45
"""Of a statement's shingles: half of its words, less the shingles that cuts and small changes break."""

_MAIN = re.compile(r"^\s*(?:pub )?fn main\b", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)

# These are searched in words: lower case, no punctuation.
_REASON = re.compile(
    r"\b(reason|reasoning|think|thinking|step by step|plan|explain|outline|analy[sz]e|consider|discuss)\b"
)
_ABOUT = re.compile(r"\b(algorithms?|approach|complexity|constraints?|limits?|edge cases?|corner cases?)\b")
_BARE = re.compile(
    r"\b(code only|(only|just|nothing but|no more than) (the |a |valid |raw |plain |complete |full |rust )*"
    r"(code|program|source)|no (explanations?|prose|markdown|fences?|backticks|commentary)"
    r"|without (any )?(explanations?|prose|markdown|fences?))\b"
)
_NO_CODE = re.compile(
    r"\b(do not|don t|without|no need to) (yet )?(write|writing|give|giving|include|output) (any |the )?code\b"
)
_RUST = re.compile(r"\brust\b")
_INSISTS = re.compile(
    r"\b((only|must|always|strictly|exclusively)( \w+){0,6} rust|rust( \w+)? only|rust 20\d\d|rust edition"
    r"|(not|no|never)( \w+){0,3} (python|c|cpp|java))\b"
)

_FAILED_TEST = (
    re.compile(r"\binput\b"),
    re.compile(r"\bexpected\b"),
    re.compile(r"\b(got|actual(ly)?|received|printed|produced|returned|(your|program s?|its) output|but)\b"),
)
_ENDED = re.compile(
    r"\b(panicked at|runtime error|overflowed|out of bounds|time limit exceeded|exceed(s|ed) the (time|memory) limit"
    r"|timed out|took too long|too slow|too much memory|memory limit exceeded|tle|mle)\b"
)
_COMPLAINT = re.compile(r"\b(wrong|incorrect|not right|fail(s|ed|ing)?|errors?|again|bugs?|fix|mistakes?|slow)\b")
_COMPILER = re.compile(r"error\[E\d{4}\]|^\s*error: ", re.MULTILINE)  # in the unchanged text


class Report(Enum):
    """A prompt's report about the shown program, in order of helpfulness."""

    NONE = "nothing"
    COMPLAINT = "a complaint without anything to go by"
    TEST = "a failing test, or how the program ended"
    COMPILER = "what the compiler said"


@dataclass(frozen=True)
class Prompt:
    """The request of a conversation."""

    problem: Problem | None
    """The problem that is stated last, or None."""
    reasoning: bool
    """Whether to reason about the algorithm and the limits first."""
    bare: bool
    """Whether to answer with code only."""
    no_code: bool
    """Whether to answer without code."""
    rust: int
    """Insistence on Rust: 0 not mentioned, 1 mentioned, 2 emphasised."""
    shown: Program | None
    """The program of the problem's pool that is shown last."""
    report: Report
    """The last message's report about that program."""


class PromptReader:
    """Reads conversations about some problems, which it recognises by runs of words of their statements."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self._problems = tuple(problems)
        self._sizes: list[int] = []
        self._numbers: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, problem in enumerate(self._problems):
            shingles = set(_shingles(words(problem.statement)))
            self._sizes.append(len(shingles))
            for shingle in shingles:
                self._numbers[shingle].append(number)

    def read(self, messages: Sequence[Mapping[str, Any]]) -> Prompt:
        """Return the request in some messages."""
        text = text_of(messages)
        stated, problem = self._stated(text)
        # Text of users and system outside statements; for the last message, also outside programs.
        own = "\n".join(text_of([message]) for message in messages if message.get("role") != "assistant")
        wishes = self._without_statements(own, stated)
        last = _FENCED.sub(lambda block: "" if _MAIN.search(block[1]) else block[0], text_of(messages[-1:]))
        shown = _shown(text, problem) if problem else None
        return Prompt(
            problem=problem,
            reasoning=bool(_REASON.search(wishes) and _ABOUT.search(wishes)),
            bare=bool(_BARE.search(wishes)),
            no_code=bool(_NO_CODE.search(wishes)),
            rust=2 if _INSISTS.search(wishes) else 1 if _RUST.search(wishes) else 0,
            shown=shown,
            report=_reported(last, self._without_statements(last, stated), shown) if shown else Report.NONE,
        )

    def _stated(self, text: str) -> tuple[set[int], Problem | None]:
        """Return the numbers of problems with at least half of their statement in the text, and the last of them."""
        positions: dict[int, dict[tuple[str, ...], int]] = defaultdict(dict)
        for position, shingle in enumerate(_shingles(words(text))):
            for number in self._numbers.get(shingle, ()):
                positions[number][shingle] = position
        stated = [number for number in positions if len(positions[number]) >= _SHARE * self._sizes[number]]
        last = max(
            stated, key=lambda number: (median(positions[number].values()), len(positions[number])), default=None
        )
        return set(stated), None if last is None else self._problems[last]

    def _without_statements(self, text: str, stated: set[int]) -> str:
        """Return the words of a text that do not come from the statements of some problems."""
        all_words = words(text)
        covered = set[int]()
        for position, shingle in enumerate(_shingles(all_words)):
            if not stated.isdisjoint(self._numbers.get(shingle, ())):
                covered.update(range(position, position + _WIDTH))
        return " ".join(word for position, word in enumerate(all_words) if position not in covered)


def text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of some messages."""
    return "\n\n".join(_content(message.get("content")) for message in messages)


def _content(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _shingles(text: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(text[start : start + _WIDTH]) for start in range(max(1, len(text) - _WIDTH + 1))]


def _shown(text: str, problem: Problem) -> Program | None:
    """Return the program of the problem's pool that a text shows last, whatever its comments and layout."""
    text = canonical(text)
    starts = {program: text.rfind(program.canonical) for program in problem.programs}
    # A program without an import may be the end of one with it: take the longest of those that end last.
    ends = {
        program: (start + len(program.canonical), len(program.canonical))
        for program, start in starts.items()
        if start >= 0
    }
    return max(ends, key=lambda program: ends[program], default=None)


def _reported(last: str, remark: str, program: Program) -> Report:
    """Return the last message's report about a program.

    A report that does not fit is a complaint; of a verdict, a reader only sees whether a program compiles.
    """
    compiles = program.verdict != COMPILE_ERROR
    compiler = bool(_COMPILER.search(last))
    test = all(pattern.search(remark) for pattern in _FAILED_TEST) or bool(_ENDED.search(remark))
    if compiler and not compiles:
        return Report.COMPILER
    if test and compiles:
        return Report.TEST
    return Report.COMPLAINT if compiler or test or _COMPLAINT.search(remark) else Report.NONE
