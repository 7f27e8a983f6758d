"""What the stand-in model knows: problems by their statements, each with a pool of whole programs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

ACCEPTED = "accepted"
COMPILE_ERROR = "compile error"

_WORD = re.compile(r"[a-z0-9]+")
# Line by line and blind to strings, so that programs inside any other text come out the same as alone.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Return the words of a text, in small letters, without punctuation."""
    return _WORD.findall(text.lower())


def without_comments(text: str) -> str:
    """Return the text without what is a comment in a program, wherever a program may stand in it."""
    return _COMMENT.sub(" ", text)


def canonical(text: str) -> str:
    """Return the words and marks of a text; those of a program are part of those of a text holding it.

    Words that are broken by white space or comments are others: whoever compares a prompt with a program sees them so.
    """
    return " ".join(_TOKEN.findall(without_comments(text)))


@dataclass(frozen=True)
class Program:
    """A program of a pool."""

    source: str
    verdict: str
    """A judge's, in the usual words: "accepted", "wrong answer", "time limit", "memory limit", "runtime error" or
    "compile error"."""

    @cached_property
    def canonical(self) -> str:
        """Its words and marks, without comments."""
        return canonical(self.source)


@dataclass(frozen=True)
class Problem:
    """A problem that the stand-in model can be asked about; it has no name.

    Raises:
        ValueError: if the pool lacks an accepted program, or one that is not.
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
        """What random draws about the problem depend on: its statement, whatever its layout."""
        return hashlib.sha256(" ".join(words(self.statement)).encode()).hexdigest()[:32]

    @property
    def correct(self) -> list[Program]:
        """The programs that are accepted."""
        return [program for program in self.programs if program.verdict == ACCEPTED]

    @property
    def flawed(self) -> list[Program]:
        """The programs that are not accepted."""
        return [program for program in self.programs if program.verdict != ACCEPTED]
