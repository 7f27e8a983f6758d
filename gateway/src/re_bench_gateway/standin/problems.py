"""What the stand-in model knows: problems by their statements, each with a pool of whole programs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from re_bench_gateway.standin.conversation import words
from re_bench_gateway.standin.source import canonical

__all__ = ["ACCEPTED", "COMPILE_ERROR", "Problem", "Program"]

ACCEPTED = "accepted"
COMPILE_ERROR = "compile error"


@dataclass(frozen=True)
class Program:
    """A program of a pool.

    Attributes:
        source: its text.
        verdict: what a judge says of it, in the usual words: "accepted", "wrong answer", "time limit", "memory limit",
            "runtime error" or "compile error".
    """

    source: str
    verdict: str

    @cached_property
    def canonical(self) -> str:
        """The text without comments and white space."""
        return canonical(self.source)


@dataclass(frozen=True)
class Problem:
    """A problem that the stand-in model can be asked about; it has no name.

    Attributes:
        statement: the text by which it is recognised.
        difficulty: a key of the odds, such as "easy".
        programs: its pool; at least one accepted program and one that is not.
    """

    statement: str
    difficulty: str
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
