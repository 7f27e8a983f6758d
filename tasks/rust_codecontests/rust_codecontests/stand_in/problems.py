"""The stand-in model's problems, recognised by their statements, each with a pool of complete programs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

ACCEPTED = "accepted"
COMPILE_ERROR = "compile error"

_WORD = re.compile(r"[a-z0-9]+")
# Works line by line and ignores strings, so that programs inside other text give the same result as alone.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())


def without_comments(text: str) -> str:
    """Return the text without comments of any program in it."""
    return _COMMENT.sub(" ", text)


def canonical(text: str) -> str:
    """Return the words and marks of a text; those of a program are contained in those of a text with it.

    Words broken by white space or comments are different words, as in comparing prompts with programs.
    """
    return " ".join(_TOKEN.findall(without_comments(text)))


@dataclass(frozen=True)
class Program:
    """A program of a pool."""

    source: str
    verdict: str
    """The judge's verdict: "accepted", "wrong answer", "time limit", "memory limit", "runtime error" or
    "compile error"."""

    @cached_property
    def canonical(self) -> str:
        """Its words and marks, without comments."""
        return canonical(self.source)


@dataclass(frozen=True)
class Problem:
    """A problem of the stand-in model, without a name.

    Raises:
        ValueError: if the pool has no accepted or no wrong program.
    """

    statement: str
    """The text by which it is recognised."""
    difficulty: str
    """A key of the odds, such as "easy"."""
    programs: tuple[Program, ...]

    def __post_init__(self) -> None:
        if not self.correct or not self.flawed:
            raise ValueError(f"a pool needs programs that are accepted and such that are not: {self.statement[:60]!r}")

    @cached_property
    def key(self) -> str:
        """Key of the problem's random draws: its statement without layout."""
        return hashlib.sha256(" ".join(words(self.statement)).encode()).hexdigest()[:32]

    @property
    def correct(self) -> list[Program]:
        """The programs that are accepted."""
        return [program for program in self.programs if program.verdict == ACCEPTED]

    @property
    def flawed(self) -> list[Program]:
        """The programs that are not accepted."""
        return [program for program in self.programs if program.verdict != ACCEPTED]
