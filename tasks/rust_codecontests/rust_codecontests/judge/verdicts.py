"""Define tests, limits and verdicts, and compare outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

_TOKEN_SHOWN = 60


@dataclass(frozen=True)
class Test:
    """One test of a problem."""

    __test__ = False  # pytest must not collect this class

    input: str
    """The program's stdin."""
    output: str
    """The expected stdout, compared by tokens."""


@dataclass(frozen=True)
class Limits:
    """A program's limits, per test except for :attr:`compile_s` and :attr:`total_s`.

    Raises:
        ValueError: if a limit is not positive and finite.
    """

    time_s: float
    """CPU seconds of all threads and processes, user and system time together."""
    memory_mib: int
    """Memory in MiB. It limits both what each process allocates (even if unused, and including thread stacks) and what
    all processes use together."""
    wall_s: float = 0.0
    """Wall-clock seconds; 0 means ``time_s + 1``. Waits for a core do not count, up to eight times the limit."""
    total_s: float = 0.0
    """Seconds for all tests together; 0 means ``15 * time_s``. Each test counts with its CPU time or its wall-clock
    time (without waits for a core), whichever is larger."""
    compile_s: float = 10.0
    """CPU seconds of the compiler; its wall-clock limit is ``3 * compile_s + 2``."""
    output_kib: int = 4096
    """Maximum output in KiB, for stdout and stderr each; more output is a runtime error."""

    def __post_init__(self) -> None:
        """Fill in the default limits, and check all limits."""
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
    """Index of the first test that failed, from 0; None if no test failed."""
    message: str
    """Message for the program's author, in which tests and tokens are numbered from 1. It contains the beginning of the
    compiler's message for a compile error, the reason for the failure of a public test, and only the verdict and the
    test's number for a hidden test."""
    tests_passed: int
    cpu_s: float
    """CPU seconds of all runs, without the compiler."""
    seconds: float
    """Wall-clock seconds spent on judging, including compilation."""


@dataclass(frozen=True)
class Difference:
    """The first difference between an output and the expected output."""

    number: int
    """Number of the token, from 1."""
    expected: bytes | None
    """The expected token; None if the output has too many tokens."""
    actual: bytes | None
    """The token in the output; None if the output has too few tokens."""

    def __str__(self) -> str:
        """Return a description of the difference."""
        if self.actual is None:
            return f"token {self.number} is missing, expected {_quoted(self.expected)}"
        if self.expected is None:
            return f"token {self.number} is {_quoted(self.actual)}, expected the end of the output"
        return f"token {self.number} is {_quoted(self.actual)}, expected {_quoted(self.expected)}"


def first_difference(output: bytes, expected: str) -> Difference | None:
    """Compare an output with the expected output token by token, and return the first difference or None.

    Tokens are separated by ASCII whitespace and compared as bytes, so an output need not be valid UTF-8.
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
