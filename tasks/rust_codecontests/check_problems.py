"""Proves the problems of profile ``cpu``: ``python check_problems.py [--pin] [NAME ...]``.

For every problem: its files have their form; the fast and the slow solution agree on small inputs; every correct
program is accepted, with time to spare; every wrong one gets the verdict that its name says. The judge is the one that
judges submissions. All faults of all problems are printed, and the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pool
from judge import Judge, Verdict
from prepare import pin
from problem_source import workers
from proofs import Entry, Tested, entries, faults_of_form, faults_of_programs, tested

from re_bench.errors import UsageError
from re_bench.processes import cli_entry_point

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from judge import Judgement

_AT_A_TIME = 8  # problems whose programs are judged together, the slowest programs first


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = _parse(arguments)
    directories = _chosen(options.names)
    started = time.monotonic()
    with workers() as processes:
        found = list(processes.map(tested, directories))
    _say(f"{len(directories)} problems have their tests, after {time.monotonic() - started:.0f} s")
    faults = Counter[str]()
    verdicts = Counter[Verdict]()
    with Judge() as judge:
        for first in range(0, len(directories), _AT_A_TIME):
            part = slice(first, first + _AT_A_TIME)
            for directory, made, programs, judgements in _judged(judge, directories[part], found[part]):
                verdicts.update(judgement.verdict for judgement in judgements)
                faults[directory.name] = _report(directory, made, programs, judgements)
    _say(f"{sum(verdicts.values())} programs: {', '.join(f'{n} {v}' for v, n in sorted(verdicts.items()))}")
    bad = sorted(name for name, count in faults.items() if count)
    _say(f"{len(directories) - len(bad)} of {len(directories)} problems hold, after {time.monotonic() - started:.0f} s")
    if bad:
        _say(f"these do not: {', '.join(bad)}")
        return 1
    if options.pin:
        pin(_say)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prove the problems of profile cpu.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="of problems; if none, all")
    parser.add_argument("--pin", action="store_true", help="then write the checksums of all tests into the repository")
    return parser.parse_args(arguments)


def _chosen(names: Sequence[str]) -> list[Path]:
    known = {directory.name: directory for directory in pool.directories()}
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"there is no problem {', '.join(unknown)}")
    return [known[name] for name in names or known]


def _judged(
    judge: Judge, directories: Sequence[Path], found: Sequence[Tested]
) -> list[tuple[Path, Tested, list[Entry], list[Judgement]]]:
    """Judge the programs of some problems, as far as these could be made."""
    pools = [entries(directory) if made.problem else [] for directory, made in zip(directories, found, strict=True)]
    jobs = [(entry, made.problem) for programs, made in zip(pools, found, strict=True) for entry in programs]
    order = sorted(range(len(jobs)), key=lambda number: jobs[number][0].verdict is not Verdict.TIME_LIMIT)
    judgements = judge.judge_all(
        [
            (entry.source, problem.tests, entry.limits(problem), len(problem.public))
            for entry, problem in (jobs[number] for number in order)
            if problem is not None
        ]
    )
    by_number = dict(zip(order, judgements, strict=True))
    numbers = iter(range(len(jobs)))
    return [
        (directory, made, programs, [by_number[next(numbers)] for _ in programs])
        for directory, made, programs in zip(directories, found, pools, strict=True)
    ]


def _report(directory: Path, made: Tested, programs: Sequence[Entry], judgements: Sequence[Judgement]) -> int:
    """Print what came out for a problem, and return the number of faults."""
    faults = faults_of_form(directory) + made.faults
    summary = "not judged"
    if made.problem is not None:
        faults += faults_of_programs(made.problem, programs, judgements)
        correct = sum(entry.verdict is Verdict.ACCEPTED for entry in programs)
        counts = f"{len(made.problem.tests)} tests in {made.oracle_s:.1f} s, {correct} correct"
        summary = f"{counts} and {len(programs) - correct} wrong programs"
    print(f"{'BAD' if faults else 'ok'} {directory.parent.name}/{directory.name}: {summary}", flush=True)
    for fault in faults:
        print(f"    {fault}", flush=True)
    return len(faults)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    with cli_entry_point("check_problems.py"):
        sys.exit(main())
