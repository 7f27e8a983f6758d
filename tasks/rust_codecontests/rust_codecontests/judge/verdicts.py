"""Tests, limits and verdicts of the judge, and the comparison of outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

_TOKEN_SHOWN = 60


@dataclass(frozen=True)
class Test:
    """One test of a problem."""

    __test__ = False  # not a class of pytest tests

    input: str
    """The program's stdin."""
    output: str
    """The expected stdout, compared by tokens."""


@dataclass(frozen=True)
class Limits:
    """Limits of a program, per test except for :attr:`compile_s` and :attr:`total_s`.

    Raises:
        ValueError: for a limit that is not positive and finite.
    """

    time_s: float
    """CPU seconds, user and system together, of all threads and processes."""
    memory_mib: int
    """Memory, in MiB: what each process allocates, touched or not, stacks of threads included, and what all of them
    together hold."""
    wall_s: float = 0.0
    """Wall-clock seconds; 0 for ``time_s + 1``. Time in which the program waits for a core does not count, up to
    eight times the limit."""
    total_s: float = 0.0
    """Seconds for all tests together; 0 for ``15 * time_s``. A test counts with its CPU time, or with its wall-clock
    time without waits for a core if that is more."""
    compile_s: float = 10.0
    """CPU seconds of the compiler; its wall-clock limit is ``3 * compile_s + 2``."""
    output_kib: int = 4096
    """Maximum output to stdout, and to stderr, in KiB; more is a runtime error."""

    def __post_init__(self) -> None:
        """Fill in the wall-clock limit and check all of them."""
        if self.wall_s == 0:
            object.__setattr__(self, "wall_s", self.time_s + 1)
        if self.total_s == 0:
            object.__setattr__(self, "total_s", 15 * self.time_s)
        for name in ("time_s", "memory_mib", "wall_s", "total_s", "compile_s", "output_kib"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value!r}; a limit is a positive number")


class Verdict(StrEnum):
    """The possible verdicts."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong answer"
    TIME_LIMIT = "time limit"
    MEMORY_LIMIT = "memory limit"
    RUNTIME_ERROR = "runtime error"
    COMPILE_ERROR = "compile error"
    TOTAL_TIME_LIMIT = "time limit for all tests together"
    NOT_JUDGED = "not judged in the time for all programs"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one program."""

    verdict: Verdict
    test: int | None
    """The first test that failed, counted from 0."""
    message: str
    """The message for the program's author, counting tests and tokens from 1. For a compile error: the beginning of the
    compiler's message. For a public test: how it failed. For another test: the verdict and the test's number."""
    tests_passed: int
    cpu_s: float
    """CPU seconds of all runs, without the compiler."""
    seconds: float
    """Wall-clock seconds of judging, including compilation."""


@dataclass(frozen=True)
class Difference:
    """The first difference between an output and the expected one."""

    number: int
    """Number of the token, from 1."""
    expected: bytes | None
    """None if the output has too many tokens."""
    actual: bytes | None
    """None if it has too few."""

    def __str__(self) -> str:
        """Return it as text."""
        if self.actual is None:
            return f"token {self.number} is missing, expected {_quoted(self.expected)}"
        if self.expected is None:
            return f"token {self.number} is {_quoted(self.actual)}, expected the end of the output"
        return f"token {self.number} is {_quoted(self.actual)}, expected {_quoted(self.expected)}"


def first_difference(output: bytes, expected: str) -> Difference | None:
    """Compare an output with the expected one by tokens, and return the first difference or None.

    Tokens are separated by ASCII whitespace and compared byte by byte, so that an output need not be UTF-8.
    """
    tokens, expected_tokens = output.split(), expected.encode().split()
    if tokens == expected_tokens:
        return None
    number = next((i for i, pair in enumerate(zip(tokens, expected_tokens, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        number = min(len(tokens), len(expected_tokens))
    return Difference(number + 1, _at(expected_tokens, number), _at(tokens, number))


def _at(tokens: list[bytes], number: int) -> bytes | None:
    return tokens[number] if number < len(tokens) else None


def _quoted(token: bytes | None) -> str:
    text = (token or b"").decode(errors="backslashreplace")
    return f'"{text[:_TOKEN_SHOWN]}{"…" if len(text) > _TOKEN_SHOWN else ""}"'
