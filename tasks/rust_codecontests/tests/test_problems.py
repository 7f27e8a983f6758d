"""The problems hold what the task promises: the form of all, a few proved by the judge, and faults that are found.

All problems are proved by ``python tasks/rust_codecontests/tools/check_problems.py``, which takes minutes.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from re_bench.data.files import import_file
from rust_codecontests import pool
from rust_codecontests.judge import Judge, Judgement, Test, Verdict
from rust_codecontests.problem_source import make_problem

if TYPE_CHECKING:
    from collections.abc import Callable

TASK = Path(__file__).parents[1]
SAMPLE = 3  # problems that are proved here
PROBLEM = TASK / "rust_codecontests" / "problems" / "train" / "badge_codes"


@pytest.fixture(scope="module")
def checks() -> Any:
    """Return the program that proves problems."""
    return import_file(TASK / "tools" / "check_problems.py", "rust_codecontests_check_problems")


@pytest.fixture(scope="module")
def directories() -> list[Path]:
    return pool.directories()


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """Return a copy of a problem."""
    return shutil.copytree(PROBLEM, tmp_path / "train" / PROBLEM.name, ignore=shutil.ignore_patterns("__pycache__"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_there_are_enough_problems_and_no_name_is_used_twice(directories: list[Path]) -> None:
    splits = Counter(directory.parent.name for directory in directories)
    assert splits == {"train": 15, "valid": 13, "test": 40, "test2": 20}
    assert len({directory.name for directory in directories}) == len(directories)


def test_every_problem_has_its_form(checks: Any, directories: list[Path]) -> None:
    faults = {directory.name: checks.faults_of_form(directory) for directory in directories}
    assert {name: lines for name, lines in faults.items() if lines} == {}


def test_no_statement_or_program_is_shown_with_the_canary(directories: list[Path]) -> None:
    for directory in directories:
        problem = pool.read(directory)
        assert "canary" not in problem.statement
        assert problem.statement[0].isalpha()
        assert not any(program.source.startswith(("//", "\n")) for program in problem.programs)


@pytest.mark.integration
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, SAMPLE))])
def test_a_few_problems_are_proved_by_the_judge(checks: Any, directories: list[Path], number: int) -> None:
    directory = random.Random(0).sample(directories, SAMPLE)[number]
    tested = checks.make_tested(directory)
    assert tested.faults == []
    problem = tested.problem
    slow = Verdict.TIME_LIMIT  # these take seconds
    programs = [program for program in checks.pool_programs(directory) if program.verdict is not slow]
    with Judge() as judge:
        judgements = judge.judge_all(
            [(program.source, problem.tests, program.limits(problem), len(problem.public)) for program in programs]
        )
    faults = checks.faults_of_programs(problem, programs, judgements)
    assert [fault for fault in faults if "public test" not in fault] == []  # a slow one may be needed for that


FORMS: list[tuple[str, Callable[[Path], object]]] = [
    ("statement.md needs the lines Input and Output", lambda path: edit(path / "statement.md", "\nInput\n", "\nIn\n")),
    ("statement.md has 3 words", lambda path: (path / "statement.md").write_text("Print a number.\n")),
    ("statement.md has the problem's name", lambda path: edit(path / "statement.md", "\nInput", "Badge codes\nInput")),
    ("statement.md: its first line must contain the canary", lambda path: edit(path / "statement.md", "canary", "")),
    ("main.rs: its first line must contain the canary", lambda path: edit(path / "correct" / "main.rs", "canary", "")),
    (
        "wa_lone_letter.rs: its second line must begin with // Flaw:",
        lambda path: edit(path / "wrong" / "wa_lone_letter.rs", "// Flaw:", "// Good:"),
    ),
    (
        "slow.rs: its name must begin with one of wa, tle, mle, re, ce",
        lambda path: (path / "wrong" / "wa_lone_letter.rs").rename(path / "wrong" / "slow.rs"),
    ),
    (
        "problem.toml: time_limit_s is 9",
        lambda path: edit(path / "problem.toml", "time_limit_s = ", "time_limit_s = 9"),
    ),
    ("problem.toml: difficulty", lambda path: edit(path / "problem.toml", 'difficulty = "', 'difficulty = "very')),
    ("problem.toml has the keys", lambda path: edit(path / "problem.toml", "topics", "about")),
    ("or no correct one", lambda path: shutil.rmtree(path / "correct")),
]


@pytest.mark.parametrize(("fault", "change"), FORMS, ids=[fault for fault, _change in FORMS])
def test_a_fault_of_form_is_found(checks: Any, problem: Path, fault: str, change: Callable[[Path], object]) -> None:
    assert checks.faults_of_form(problem) == []
    change(problem)
    assert any(line.startswith(fault) or fault in line for line in checks.faults_of_form(problem))


MANY_FAULTS = """
import itertools
NUMBERS = itertools.count()
PUBLIC = 4 * ('1\\nAA\\n',)

def private():
    yield f'1\\n{next(NUMBERS)}A\\n'
    yield '1\\n' + 400_000 * 'A' + '\\n'
"""
TESTS: list[tuple[str, tuple[str, ...]]] = [
    (
        MANY_FAULTS,
        (
            "makes different inputs each time", "4 public tests, not 1 to 3", "2 private and", "the same test twice",
            "an input of more than 300000 bytes",
        ),
    ),
    (
        "def small(rng):\n    return PUBLIC[0]\n\n\ndef brute(text):\n    return solve(text) + ' 1'\n",
        ("small() gives fewer than 4 different outputs", "solve and brute differ on"),
    ),
    ("def brute(text):\n    return str(1 // 0)\n", ("tests.py: ZeroDivisionError",)),
    ("unknown\n", ("NameError",)),
]  # fmt: skip


@pytest.mark.integration
@pytest.mark.parametrize(("code", "faults"), TESTS, ids=["inputs", "solutions", "raises", "does not load"])
def test_faults_of_tests_are_found(checks: Any, problem: Path, code: str, faults: tuple[str, ...]) -> None:
    with (problem / "tests.py").open("a") as file:
        file.write(f"\n\n{code}")
    found = checks.make_tested(problem).faults
    assert [fault for fault in faults if not any(fault in line for line in found)] == [], found


@pytest.fixture
def judged(checks: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return a problem, its programs and judgements on them as they should be."""
    problem = dataclasses.replace(make_problem(PROBLEM), public=(Test("1", "1"),))
    programs = checks.pool_programs(PROBLEM)
    failed_at = {Verdict.ACCEPTED: None, Verdict.COMPILE_ERROR: None, Verdict.WRONG_ANSWER: 0}
    judgements = [
        Judgement(program.verdict, failed_at.get(program.verdict, 5), "as it should be", 0, 0.1, 0.1)
        for program in programs
    ]
    return problem, programs, judgements


def test_a_correct_program_that_fails_and_a_wrong_one_that_does_not_are_faults(
    checks: Any, judged: tuple[Any, list[Any], list[Any]]
) -> None:
    problem, programs, judgements = judged
    positions = {program.verdict: position for position, program in enumerate(programs)}.values()
    for position in positions:
        other = Verdict.TIME_LIMIT if programs[position].verdict is Verdict.ACCEPTED else Verdict.ACCEPTED
        changed = list(judgements)
        changed[position] = dataclasses.replace(judgements[position], verdict=other, message="otherwise")
        faults = checks.faults_of_programs(problem, programs, changed)
        assert faults[0] == f"{programs[position].name}: otherwise (0.10 s), not {programs[position].verdict}"


@pytest.mark.parametrize(
    ("failed_at", "fault"),
    [
        (0, "no wrong program passes the public tests"),
        (3, "no wrong program that compiles fails a public test"),
    ],
)
def test_public_tests_find_some_wrong_programs_and_not_all(
    checks: Any, judged: tuple[Any, list[Any], list[Any]], failed_at: int, fault: str
) -> None:
    problem, programs, judgements = judged
    changed = [entry if entry.test is None else dataclasses.replace(entry, test=failed_at) for entry in judgements]
    assert checks.faults_of_programs(problem, programs, changed) == [fault]


def test_a_problem_needs_a_program_that_does_not_compile(checks: Any, judged: tuple[Any, list[Any], list[Any]]) -> None:
    problem, programs, judgements = judged
    kept = [
        (program, judgement)
        for program, judgement in zip(programs, judgements, strict=True)
        if program.verdict is not Verdict.COMPILE_ERROR
    ]
    assert checks.faults_of_programs(problem, *map(list, zip(*kept, strict=True))) == [
        "no wrong program fails to compile"
    ]


def test_limits_have_a_margin_where_time_decides(judged: tuple[Any, list[Any], list[Any]]) -> None:
    problem, programs, _judgements = judged
    factors = {program.verdict.name: program.limits(problem).time_s / problem.time_limit_s for program in programs}
    assert factors["ACCEPTED"] == pytest.approx(1 / 3)
    assert factors["WRONG_ANSWER"] == 1


@pytest.mark.integration
def test_the_check_lists_the_faults_of_all_problems_and_pins_only_without_any(python: Any, task: Path) -> None:
    package = task / "rust_codecontests"
    shutil.rmtree(package / "problems" / "test")
    for path in package.glob("problems/*/*/wrong/tle_*"):
        path.unlink()  # they take seconds
    form, tests = (package / "problems" / name for name in ("valid/tide_steps", "test2/turning_tray"))
    edit(form / "statement.md", "\nInput\n", "\nIn\n")
    with (tests / "tests.py").open("a") as file:
        file.write("\n\ndef brute(text):\n    return 'no'\n")
    for path in (*form.glob("wrong/*"), *tests.glob("wrong/*")):
        path.unlink()  # one fault more
    before = (package / "checksums.json").read_bytes()
    done = python(task / "tools" / "check_problems.py", "--pin", PYTHONPATH=str(task))
    assert done.returncode == 1
    assert "BAD valid/tide_steps" in done.stdout
    assert "    statement.md needs the lines Input and Output" in done.stdout
    assert "    solve and brute differ on" in done.stdout
    assert "ok train/badge_codes" in done.stdout
    assert "failed: tide_steps, turning_tray" in done.stderr
    assert (package / "checksums.json").read_bytes() == before
    shutil.rmtree(form.parent)
    shutil.rmtree(tests.parent)
    (package / "checksums.json").unlink()
    done = python(task / "tools" / "check_problems.py", "--pin", PYTHONPATH=str(task))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 problems passed" in done.stderr
    assert (package / "checksums.json").is_file()
