"""The problems hold what the task promises: the form of all, a few proved by the judge, and faults that are found.

All problems are proved by ``python tasks/rust_codecontests/check_problems.py``, which takes minutes.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

TASK = Path(__file__).parents[1]
SAMPLE = 3  # problems that are proved here
PROBLEM = TASK / "problems" / "train" / "badge_codes"


@pytest.fixture(scope="module")
def proofs(data_modules: dict[str, ModuleType]) -> Any:
    return data_modules["proofs"]


@pytest.fixture(scope="module")
def directories(data_modules: dict[str, ModuleType]) -> list[Path]:
    found: list[Path] = data_modules["pool"].directories()
    return found


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
    assert splits == {"train": 15, "valid": 10, "test": 40}
    assert len({directory.name for directory in directories}) == len(directories)


def test_every_problem_has_its_form(proofs: Any, directories: list[Path]) -> None:
    faults = {directory.name: proofs.faults_of_form(directory) for directory in directories}
    assert {name: found for name, found in faults.items() if found} == {}


def test_the_held_out_problems_have_every_difficulty(data_modules: dict[str, ModuleType]) -> None:
    pool = data_modules["pool"]
    difficulties = Counter(pool.read(directory).difficulty for directory in pool.directories(["test"]))
    assert min(difficulties[name] for name in ("easy", "medium", "hard")) >= 4


def test_no_statement_or_program_is_shown_with_the_canary(
    data_modules: dict[str, ModuleType], directories: list[Path]
) -> None:
    for directory in directories:
        problem = data_modules["pool"].read(directory)
        assert "canary" not in problem.statement
        assert problem.statement[0].isalpha()
        assert not any(program.source.startswith(("//", "\n")) for program in problem.programs)


@pytest.mark.parametrize("number", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, SAMPLE))])
def test_a_few_problems_are_proved_by_the_judge(
    data_modules: dict[str, ModuleType], directories: list[Path], number: int
) -> None:
    proofs = data_modules["proofs"]
    directory = random.Random(0).sample(directories, SAMPLE)[number]
    made = proofs.tested(directory)
    assert made.faults == []
    slow = data_modules["judge"].Verdict.TIME_LIMIT
    programs = [entry for entry in proofs.entries(directory) if entry.verdict is not slow]  # these take seconds
    with data_modules["judge"].Judge() as judge:
        judgements = judge.judge_all(
            [
                (each.source, made.problem.tests, each.limits(made.problem), len(made.problem.public))
                for each in programs
            ]
        )
    faults = proofs.faults_of_programs(made.problem, programs, judgements)
    assert [fault for fault in faults if "public test" not in fault] == []  # a slow one may be needed for that


FORMS: list[tuple[str, Callable[[Path], object]]] = [
    ("statement.md needs the lines Input and Output", lambda path: edit(path / "statement.md", "\nInput\n", "\nIn\n")),
    ("statement.md has 3 words", lambda path: (path / "statement.md").write_text("Print a number.\n")),
    ("statement.md has the problem's name", lambda path: edit(path / "statement.md", "\nInput", "Badge codes\nInput")),
    ("statement.md: its first line must hold the canary", lambda path: edit(path / "statement.md", "canary", "")),
    ("main.rs: its first line must hold the canary", lambda path: edit(path / "correct" / "main.rs", "canary", "")),
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
def test_a_fault_of_form_is_found(proofs: Any, problem: Path, fault: str, change: Callable[[Path], object]) -> None:
    assert proofs.faults_of_form(problem) == []
    change(problem)
    assert any(found.startswith(fault) or fault in found for found in proofs.faults_of_form(problem))


COUNTED = """
import itertools
NUMBERS = itertools.count()

def private():
    yield from (f"1\\n{next(NUMBERS)}A\\n" for _ in range(9))
"""
TESTS: list[tuple[str, str]] = [
    ("solve and brute differ on", "def brute(text):\n    return solve(text) + ' 1'\n"),
    ("small() gives fewer than 4 different outputs", "def small(rng):\n    return PUBLIC[0]\n"),
    ("2 private and", "def private():\n    yield '1\\nAA\\n'\n    yield '1\\nAB\\n'\n"),
    ("the same test twice", "def private():\n    yield from 8 * PUBLIC\n"),
    ("4 public tests, not 1 to 3", "PUBLIC = 4 * ('1\\nAA\\n',)\n"),
    ("an input of more than 300000 bytes", "def private():\n    yield '1\\n' + 400_000 * 'A' + '\\n'\n"),
    ("makes other inputs when asked again", COUNTED),
    ("tests.py: ZeroDivisionError", "def brute(text):\n    return str(1 // 0)\n"),
    ("NameError", "unknown\n"),
]


@pytest.mark.parametrize(("fault", "code"), TESTS, ids=[fault for fault, _code in TESTS])
def test_a_fault_of_tests_is_found(proofs: Any, problem: Path, fault: str, code: str) -> None:
    with (problem / "tests.py").open("a") as file:
        file.write(f"\n\n{code}")
    assert any(fault in found for found in proofs.tested(problem).faults)


@pytest.fixture
def judged(proofs: Any, data_modules: dict[str, ModuleType]) -> tuple[Any, list[Any], list[Any]]:
    """Return a problem, its programs and judgements on them as they should be."""
    judge = data_modules["judge"]
    problem = dataclasses.replace(proofs.made(PROBLEM), public=(judge.Test("1", "1"),))
    programs = proofs.entries(PROBLEM)
    failed_at = {judge.Verdict.ACCEPTED: None, judge.Verdict.COMPILE_ERROR: None, judge.Verdict.WRONG_ANSWER: 0}
    judgements = [
        judge.Judgement(entry.verdict, failed_at.get(entry.verdict, 5), "as it should be", 0, 0.1, 0.1)
        for entry in programs
    ]
    return problem, programs, judgements


def test_right_judgements_are_no_fault(proofs: Any, judged: tuple[Any, list[Any], list[Any]]) -> None:
    assert proofs.faults_of_programs(*judged) == []


def test_a_correct_program_that_fails_and_a_wrong_one_that_does_not_are_faults(
    proofs: Any, data_modules: dict[str, ModuleType], judged: tuple[Any, list[Any], list[Any]]
) -> None:
    verdict = data_modules["judge"].Verdict
    problem, programs, judgements = judged
    places = {entry.verdict: place for place, entry in enumerate(programs)}.values()
    for place in places:
        other = verdict.TIME_LIMIT if programs[place].verdict is verdict.ACCEPTED else verdict.ACCEPTED
        changed = list(judgements)
        changed[place] = dataclasses.replace(judgements[place], verdict=other, message="otherwise")
        faults = proofs.faults_of_programs(problem, programs, changed)
        assert faults[0] == f"{programs[place].name}: otherwise (0.10 s), not {programs[place].verdict}"


@pytest.mark.parametrize(
    ("failed_at", "fault"),
    [
        (0, "no wrong program passes the public tests"),
        (3, "no wrong program that compiles fails a public test"),
    ],
)
def test_public_tests_find_some_wrong_programs_and_not_all(
    proofs: Any, judged: tuple[Any, list[Any], list[Any]], failed_at: int, fault: str
) -> None:
    problem, programs, judgements = judged
    changed = [each if each.test is None else dataclasses.replace(each, test=failed_at) for each in judgements]
    assert proofs.faults_of_programs(problem, programs, changed) == [fault]


def test_a_problem_needs_a_program_that_does_not_compile(
    proofs: Any, data_modules: dict[str, ModuleType], judged: tuple[Any, list[Any], list[Any]]
) -> None:
    problem, programs, judgements = judged
    kept = [
        (entry, judgement)
        for entry, judgement in zip(programs, judgements, strict=True)
        if entry.verdict is not data_modules["judge"].Verdict.COMPILE_ERROR
    ]
    assert proofs.faults_of_programs(problem, *map(list, zip(*kept, strict=True))) == [
        "no wrong program fails to compile"
    ]


def test_limits_have_a_margin_where_time_decides(judged: tuple[Any, list[Any], list[Any]]) -> None:
    problem, programs, _judgements = judged
    factors = {entry.verdict.name: entry.limits(problem).time_s / problem.time_limit_s for entry in programs}
    assert factors["ACCEPTED"] == pytest.approx(1 / 3)
    assert factors["WRONG_ANSWER"] == 1


def test_the_check_lists_the_faults_of_all_problems_and_pins_nothing(python: Any, task: Path) -> None:
    edit(task / "problems/train/badge_codes/statement.md", "\nInput\n", "\nIn\n")
    with (task / "problems/valid/tide_steps/tests.py").open("a") as file:
        file.write("\n\ndef brute(text):\n    return 'no'\n")
    before = (task / "checksums.json").read_bytes()
    for path in task.glob("problems/*/*/wrong/tle_*"):
        path.unlink()  # they take seconds
    done = python(task / "check_problems.py", "--pin")
    assert done.returncode == 1
    assert "BAD train/badge_codes" in done.stdout
    assert "    statement.md needs the lines Input and Output" in done.stdout
    assert "    solve and brute differ on" in done.stdout
    assert "ok test/woven_bracelet" in done.stdout
    assert "these do not: badge_codes, tide_steps" in done.stderr
    assert (task / "checksums.json").read_bytes() == before


def test_the_check_proves_and_pins(python: Any, task: Path) -> None:
    for split in ("valid", "test"):
        shutil.rmtree(task / "problems" / split)
    (task / "checksums.json").unlink()
    done = python(task / "check_problems.py", "--pin")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 problems hold" in done.stderr
    assert (task / "checksums.json").is_file()


def test_an_unknown_name_is_refused(python: Any, task: Path) -> None:
    done = python(task / "check_problems.py", "nothing_like_it")
    assert (done.returncode, done.stderr) == (2, "check_problems.py: there is no problem nothing_like_it\n")
