"""The truth: the held-out problems with all their tests, and the judge's verdicts on programs for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rust_codecontests import dataset
from rust_codecontests.judge import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rust_codecontests.answers import Answer
    from rust_codecontests.dataset import Problem
    from rust_codecontests.judge import Judge, Verdict


def held_out_problems(profile: str) -> list[Problem]:
    """Return the problems that a submission is scored on, hidden tests included.

    Raises:
        UsageError: if they are not prepared here.
        ReBenchError: if the prepared file is not what its manifest says.
    """
    return dataset.read(profile, "test")


def judge_answers(judge: Judge, problems: Sequence[Problem], answers: Sequence[Answer]) -> list[Verdict]:
    """Return the verdicts on all programs that there are: each is compiled and run on all tests of its problem."""
    programs = [
        (answer.source, problem.tests, Limits(problem.time_limit_s, problem.memory_limit_mib), len(problem.public))
        for problem, answer in zip(problems, answers, strict=True)
        if answer.source is not None
    ]
    return [judgement.verdict for judgement in judge.judge_all(programs)]
