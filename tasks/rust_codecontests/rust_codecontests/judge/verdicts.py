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
    """Memory in MiB: a limit on the allocations of each process (even if unused, and including thread stacks), and on
    the memory that all processes use together."""
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


def first_difference(output: bytes, expected: str) -> str | None:
    """Compare an output with the expected output token by token, and describe the first difference; None if equal.

    Tokens are separated by ASCII whitespace and compared as bytes, so an output need not be valid UTF-8.
    """
    tokens, expected_tokens = output.split(), expected.encode().split()
    if tokens == expected_tokens:
        return None
    number = next((i for i, pair in enumerate(zip(tokens, expected_tokens, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        number = min(len(tokens), len(expected_tokens))
    if number == len(tokens):
        return f"token {number + 1} is missing, expected {_quoted(expected_tokens[number])}"
    wanted = "the end of the output" if number == len(expected_tokens) else _quoted(expected_tokens[number])
    return f"token {number + 1} is {_quoted(tokens[number])}, expected {wanted}"


def _quoted(token: bytes) -> str:
    text = token.decode(errors="backslashreplace")
    return f'"{text[:_TOKEN_SHOWN]}{"…" if len(text) > _TOKEN_SHOWN else ""}"'
