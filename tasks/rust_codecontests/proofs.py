"""What must hold for a problem of profile ``cpu``. Each function returns the faults that it finds, a line for each."""

from __future__ import annotations

import random
import time
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pool
from judge import Limits, Verdict
from problem_source import Oracle, made

from re_bench.errors import ReBenchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dataset import Problem
    from judge import Judgement

__all__ = ["Entry", "Tested", "entries", "faults_of_form", "faults_of_programs", "tested"]

DIFFICULTIES = ("easy", "medium", "hard")
TIME_S = (1, 3)
MEMORY_MIB = (16, 512)
WORDS = (90, 380)  # of a statement
WRONG = 4  # wrong programs at least
PUBLIC = (1, 3)  # tests
PRIVATE, GENERATED = 8, 6  # tests at least
INPUT_BYTES = 300_000
TEST_BYTES = 2_000_000  # inputs of a problem together, and outputs too
ORACLE_S = 20.0
SMALL = 300  # inputs on which both solutions must agree
DIFFERENT = 4  # outputs of them at least
MARGIN = 3
"""A correct program takes at most the time limit over this, a slow one more than the limit times this."""


@dataclass(frozen=True)
class Tested:
    """A problem whose tests were made, unless that failed."""

    problem: Problem | None
    faults: list[str]
    oracle_s: float = 0.0
    """CPU seconds that its tests took to make."""


@dataclass(frozen=True)
class Entry:
    """One program of a problem, and the verdict it must get."""

    name: str
    source: str
    verdict: Verdict

    def limits(self, problem: Problem) -> Limits:
        """Return the problem's limits, with a margin on the time limit that makes the verdict sure elsewhere too."""
        factor = {Verdict.ACCEPTED: 1 / MARGIN, Verdict.TIME_LIMIT: MARGIN}.get(self.verdict, 1)
        return Limits(problem.time_limit_s * factor, problem.memory_limit_mib)


def faults_of_form(directory: Path) -> list[str]:
    """Look at the files of a problem, and run nothing."""
    return [*_faults_of_settings(directory), *_faults_of_texts(directory), *_faults_of_names(directory)]


def _faults_of_settings(directory: Path) -> Iterator[str]:
    settings = tomllib.loads((directory / "problem.toml").read_text())
    if set(settings) != {"difficulty", "topics", "time_limit_s", "memory_limit_mib"}:
        yield f"problem.toml has the keys {', '.join(settings)}"
        return
    if settings["difficulty"] not in DIFFICULTIES or not settings["topics"]:
        yield f"problem.toml: difficulty is one of {', '.join(DIFFICULTIES)}, and there is a topic"
    for name, (least, most) in (("time_limit_s", TIME_S), ("memory_limit_mib", MEMORY_MIB)):
        if not least <= settings[name] <= most:
            yield f"problem.toml: {name} is {settings[name]}, not {least} to {most}"


def _faults_of_texts(directory: Path) -> Iterator[str]:
    statement = pool.statement(directory)
    if not WORDS[0] <= (words := len(statement.split())) <= WORDS[1]:
        yield f"statement.md has {words} words, not {WORDS[0]} to {WORDS[1]}"
    sections = [line for line in statement.splitlines() if line in {"Input", "Output"}]
    if sections != ["Input", "Output"]:
        yield "statement.md needs the lines Input and Output, once each and in this order"
    if directory.name.replace("_", " ") in statement.lower():
        yield "statement.md has the problem's name"
    for path in sorted(path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        if pool.CANARY not in path.read_text().partition("\n")[0]:
            yield f"{path.name}: its first line must hold the canary"


def _faults_of_names(directory: Path) -> Iterator[str]:
    wrong = sorted((directory / "wrong").glob("*.rs"))
    for path in wrong:
        if not path.read_text().partition("\n")[2].startswith("// Flaw: "):
            yield f"{path.name}: its second line must begin with // Flaw:"
        if path.stem.split("_")[0] not in pool.VERDICTS:
            yield f"{path.name}: its name must begin with one of {', '.join(pool.VERDICTS)}"
    if not list((directory / "correct").glob("*.rs")) or len(wrong) < WRONG:
        yield f"{len(wrong)} wrong programs, or no correct one; at least {WRONG} and 1"


def tested(directory: Path) -> Tested:
    """Make the tests of a problem twice, and compare its two solutions."""
    started = time.process_time()
    try:
        problem = made(directory)
        oracle_s = time.process_time() - started
        oracle = Oracle(directory)
        faults = [*_faults_of_tests(problem, oracle, oracle_s), *_faults_of_solutions(problem, oracle)]
    except ReBenchError as error:
        return Tested(None, [str(error)])
    except Exception as error:  # noqa: BLE001 - the problem's own code may raise anything
        return Tested(None, [f"tests.py: {type(error).__name__}: {error}"])
    return Tested(problem, faults, oracle_s)


def _faults_of_tests(problem: Problem, oracle: Oracle, oracle_s: float) -> Iterator[str]:
    inputs = [test.input for test in problem.tests]
    if not list(oracle.inputs()) == list(oracle.inputs()) == inputs:
        yield "tests.py makes other inputs when asked again"
    if not PUBLIC[0] <= len(problem.public) <= PUBLIC[1]:
        yield f"{len(problem.public)} public tests, not {PUBLIC[0]} to {PUBLIC[1]}"
    if len(problem.private) < PRIVATE or len(problem.generated) < GENERATED:
        counts = f"{len(problem.private)} private and {len(problem.generated)} generated tests"
        yield f"{counts}; at least {PRIVATE} and {GENERATED}"
    if len(set(inputs)) < len(inputs):
        yield "the same test twice"
    if max(len(text) for text in inputs) > INPUT_BYTES:
        yield f"an input of more than {INPUT_BYTES} bytes"
    for side in (inputs, [test.output for test in problem.tests]):
        if sum(len(text) for text in side) > TEST_BYTES:
            yield f"inputs or outputs of more than {TEST_BYTES} bytes together"
    if oracle_s > ORACLE_S:
        yield f"the tests take {oracle_s:.0f} s to make, more than {ORACLE_S:.0f}"
    outputs = {tuple(test.output.split()) for test in problem.tests}
    if len(outputs) < min(6, len(inputs) // 3):
        yield f"only {len(outputs)} different outputs"


def _faults_of_solutions(problem: Problem, oracle: Oracle) -> Iterator[str]:
    rng = random.Random(2)
    small = [oracle.small(rng) for _ in range(SMALL)]
    outputs = [oracle.solve(text).split() for text in small]
    if len({tuple(output) for output in outputs}) < DIFFERENT:
        yield f"small() gives fewer than {DIFFERENT} different outputs"
    public = [(test.input, test.output.split()) for test in problem.public]
    for text, output in [*public, *zip(small, outputs, strict=True)]:
        if (slow := oracle.brute(text).split()) != output:
            yield f"solve and brute differ on {text!r}: {output} and {slow}"
            return


def entries(directory: Path) -> list[Entry]:
    """Return the programs of a problem, the correct ones first."""
    correct = [(path, Verdict.ACCEPTED) for path in sorted((directory / "correct").glob("*.rs"))]
    wrong = [
        (path, Verdict(pool.VERDICTS[path.stem.split("_")[0]])) for path in sorted((directory / "wrong").glob("*.rs"))
    ]
    return [Entry(f"{path.parent.name}/{path.name}", pool.source(path), verdict) for path, verdict in correct + wrong]


def faults_of_programs(problem: Problem, programs: Sequence[Entry], judgements: Sequence[Judgement]) -> list[str]:
    """Compare judgements, made under :meth:`Entry.limits` on all tests, with what the names of programs say."""
    judged = list(zip(programs, judgements, strict=True))
    faults = [
        f"{entry.name}: {judgement.message[:500]} ({judgement.cpu_s:.2f} s), not {entry.verdict}"
        for entry, judgement in judged
        if judgement.verdict is not entry.verdict
    ]
    failed_at = [judgement.test for entry, judgement in judged if entry.verdict is not Verdict.ACCEPTED]
    public = len(problem.public)
    if not any(test is not None and test >= public for test in failed_at):
        faults.append("no wrong program passes the public tests")
    if not any(test is not None and test < public for test in failed_at):
        faults.append("no wrong program that compiles fails a public test")
    if None not in failed_at:
        faults.append("no wrong program fails to compile")
    return faults
