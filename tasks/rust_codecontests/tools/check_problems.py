"""Check our own problems: ``python tools/check_problems.py [--pin] [NAME ...]``.

For every problem, check that its files have the required form, that the fast and the slow solution agree on small
inputs, that every correct program is accepted with time to spare, and that every wrong program gets the verdict in its
name. The scorer's judge judges the programs. All faults are printed; the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point, print_progress
from rust_codecontests import pool
from rust_codecontests.judge import Judge, Limits, Verdict
from rust_codecontests.observing import write_observed
from rust_codecontests.problem_source import Oracle, make_problem, worker_processes
from rust_codecontests.workspace import pin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rust_codecontests.dataset import Problem
    from rust_codecontests.judge import Judgement

DIFFICULTIES = ("easy", "medium", "hard")
TIME_S = (1, 3)
MEMORY_MIB = (16, 512)
WORDS = (90, 380)  # in a statement
WRONG = 4  # minimum number of wrong programs
PUBLIC = (1, 3)  # number of public tests
PRIVATE, GENERATED = 8, 6  # minimum numbers of private and generated tests
INPUT_BYTES = 300_000
TEST_BYTES = 2_000_000  # maximum for all inputs of a problem, and for all outputs
ORACLE_S = 20.0
SMALL = 300  # number of inputs on which both solutions must agree
DIFFERENT = 4  # minimum number of different outputs for these inputs
MARGIN = 3
"""Safety factor: correct programs must stay within the time limit divided by this factor, and slow programs must exceed
the time limit times this factor."""
_AT_A_TIME = 8  # number of problems whose programs are judged together, slow programs first


@dataclass(frozen=True)
class TestedProblem:
    """A problem with its tests, and the faults found while making them."""

    problem: Problem | None
    """None if the tests could not be made."""
    faults: list[str]
    oracle_s: float = 0.0
    """CPU seconds for making the tests."""


@dataclass(frozen=True)
class PoolProgram:
    """A program of a problem, and the required verdict."""

    name: str
    source: str
    verdict: Verdict

    def limits(self, problem: Problem) -> Limits:
        """Return the problem's limits, with a margin on the time limit so that other machines give the same verdict."""
        factor = {Verdict.ACCEPTED: 1 / MARGIN, Verdict.TIME_LIMIT: MARGIN}.get(self.verdict, 1)
        return Limits(problem.time_limit_s * factor, problem.memory_limit_mib)


def faults_of_form(directory: Path) -> list[str]:
    """Return the faults in a problem's files, without running anything."""
    return [*_faults_of_settings(directory), *_faults_of_texts(directory), *_faults_of_names(directory)]


def _faults_of_settings(directory: Path) -> Iterator[str]:
    settings = tomllib.loads((directory / "problem.toml").read_text())
    if set(settings) != {"difficulty", "topics", "time_limit_s", "memory_limit_mib"}:
        yield f"problem.toml has the keys {', '.join(settings)}"
        return
    if settings["difficulty"] not in DIFFICULTIES or not settings["topics"]:
        yield f"problem.toml: difficulty must be one of {', '.join(DIFFICULTIES)}, and topics must not be empty"
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
            yield f"{path.name}: its first line must contain the canary"


def _faults_of_names(directory: Path) -> Iterator[str]:
    wrong = sorted((directory / "wrong").glob("*.rs"))
    for path in wrong:
        if not path.read_text().partition("\n")[2].startswith("// Flaw: "):
            yield f"{path.name}: its second line must begin with // Flaw:"
        if path.stem.split("_")[0] not in pool.VERDICTS:
            yield f"{path.name}: its name must begin with one of {', '.join(pool.VERDICTS)}"
    if not list((directory / "correct").glob("*.rs")) or len(wrong) < WRONG:
        yield f"{len(wrong)} wrong programs, or no correct one; at least {WRONG} and 1"


def make_tested(directory: Path) -> TestedProblem:
    """Make a problem's tests, and check the tests and the two solutions."""
    started = time.process_time()
    try:
        problem = make_problem(directory)
        oracle_s = time.process_time() - started
        oracle = Oracle(directory)
        faults = [*_faults_of_tests(problem, oracle, oracle_s), *_faults_of_solutions(problem, oracle)]
    except ReBenchError as error:
        return TestedProblem(None, [str(error)])
    except Exception as error:  # noqa: BLE001 - the problem's own code may raise anything
        return TestedProblem(None, [f"tests.py: {type(error).__name__}: {error}"])
    return TestedProblem(problem, faults, oracle_s)


def _faults_of_tests(problem: Problem, oracle: Oracle, oracle_s: float) -> Iterator[str]:
    inputs = [test.input for test in problem.tests]
    if not list(oracle.inputs()) == list(oracle.inputs()) == inputs:
        yield "tests.py makes different inputs each time"
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


def pool_programs(directory: Path) -> list[PoolProgram]:
    """Return the programs of a problem, correct programs first."""
    correct = [(path, Verdict.ACCEPTED) for path in sorted((directory / "correct").glob("*.rs"))]
    wrong = [
        (path, Verdict(pool.VERDICTS[path.stem.split("_")[0]])) for path in sorted((directory / "wrong").glob("*.rs"))
    ]
    return [
        PoolProgram(f"{path.parent.name}/{path.name}", pool.source(path), verdict) for path, verdict in correct + wrong
    ]


def faults_of_programs(problem: Problem, programs: Sequence[PoolProgram], judgements: Sequence[Judgement]) -> list[str]:
    """Return a fault for each program that does not get its required verdict with :meth:`PoolProgram.limits`.

    Also return a fault for each required way of failing that no wrong program shows.
    """
    judged = list(zip(programs, judgements, strict=True))
    faults = [
        f"{program.name}: {judgement.message[:500]} ({judgement.cpu_s:.2f} s), not {program.verdict}"
        for program, judgement in judged
        if judgement.verdict is not program.verdict
    ]
    failed_at = [judgement.test for program, judgement in judged if program.verdict is not Verdict.ACCEPTED]
    public = len(problem.public)
    if not any(test is not None and test >= public for test in failed_at):
        faults.append("no wrong program passes the public tests")
    if not any(test is not None and test < public for test in failed_at):
        faults.append("no wrong program that compiles fails a public test")
    if None not in failed_at:
        faults.append("no wrong program fails to compile")
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = _parse(arguments)
    directories = _chosen(options.names)
    started = time.monotonic()
    with worker_processes() as processes:
        tested = list(processes.map(make_tested, directories))
    print_progress(f"made the tests of {len(directories)} problems in {time.monotonic() - started:.0f} s")
    faults = Counter[str]()
    verdicts = Counter[Verdict]()
    with Judge() as judge:
        for first in range(0, len(directories), _AT_A_TIME):
            part = slice(first, first + _AT_A_TIME)
            for path, result, programs, judgements in _judged(judge, directories[part], tested[part]):
                verdicts.update(judgement.verdict for judgement in judgements)
                faults[path.name] = _report(path, result, programs, judgements)
    print_progress(f"{sum(verdicts.values())} programs: {', '.join(f'{n} {v}' for v, n in sorted(verdicts.items()))}")
    bad = sorted(name for name, count in faults.items() if count)
    print_progress(
        f"{len(directories) - len(bad)} of {len(directories)} problems passed, after {time.monotonic() - started:.0f} s"
    )
    if bad:
        print_progress(f"failed: {', '.join(bad)}")
        return 1
    if options.pin:
        write_observed(directories)
        pin(print_progress)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check our own problems.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="names of problems (default: all)")
    parser.add_argument("--pin", action="store_true", help="if all pass, write checksums and public.toml files")
    return parser.parse_args(arguments)


def _chosen(names: Sequence[str]) -> list[Path]:
    directories = {directory.name: directory for directory in pool.directories()}
    if unknown := sorted(set(names) - set(directories)):
        raise UsageError(f"there is no problem {', '.join(unknown)}")
    return [directories[name] for name in names or directories]


def _judged(
    judge: Judge, directories: Sequence[Path], tested: Sequence[TestedProblem]
) -> list[tuple[Path, TestedProblem, list[PoolProgram], list[Judgement]]]:
    """Judge the programs of some problems; problems without tests get no judgements."""
    pools = [pool_programs(path) if result.problem else [] for path, result in zip(directories, tested, strict=True)]
    jobs = [(program, result.problem) for programs, result in zip(pools, tested, strict=True) for program in programs]
    order = sorted(range(len(jobs)), key=lambda number: jobs[number][0].verdict is not Verdict.TIME_LIMIT)
    judgements = judge.judge_all(
        [
            (program.source, problem.tests, program.limits(problem), len(problem.public))
            for program, problem in (jobs[number] for number in order)
            if problem is not None
        ]
    )
    by_number = dict(zip(order, judgements, strict=True))
    numbers = iter(range(len(jobs)))
    return [
        (path, result, programs, [by_number[next(numbers)] for _ in programs])
        for path, result, programs in zip(directories, tested, pools, strict=True)
    ]


def _report(
    directory: Path, result: TestedProblem, programs: Sequence[PoolProgram], judgements: Sequence[Judgement]
) -> int:
    """Print the results for a problem, and return the number of faults."""
    faults = faults_of_form(directory) + result.faults
    summary = "not judged"
    if result.problem is not None:
        faults += faults_of_programs(result.problem, programs, judgements)
        correct = sum(program.verdict is Verdict.ACCEPTED for program in programs)
        counts = f"{len(result.problem.tests)} tests in {result.oracle_s:.1f} s, {correct} correct"
        summary = f"{counts} and {len(programs) - correct} wrong programs"
    print(f"{'BAD' if faults else 'ok'} {directory.parent.name}/{directory.name}: {summary}", flush=True)
    for fault in faults:
        print(f"    {fault}", flush=True)
    return len(faults)


if __name__ == "__main__":
    with cli_entry_point("check_problems.py"):
        sys.exit(main())
