"""Read the held-out problems with all their tests, and judge programs for them."""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from rust_codecontests import dataset
from rust_codecontests.judge import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rust_codecontests.answers import Answer
    from rust_codecontests.dataset import Problem
    from rust_codecontests.judge import Judge, Judgement
    from rust_codecontests.stand_in.problems import Problem as KnownProblem


def held_out_problems(profile: str) -> list[Problem]:
    """Return the problems that a submission is scored on, including hidden tests.

    Raises:
        UsageError: if the problems are not prepared.
        ReBenchError: if the prepared file does not match its manifest.
    """
    return dataset.read(profile, dataset.held_out_split(profile))


def public_problems(problems: Sequence[Problem | KnownProblem], of_five: int) -> list[bool]:
    """Return which problems count for the public score: of each difficulty, the last ``of_five`` of every five.

    With two of five, both parts of split ``test`` are equally hard for the reference. If this makes none
    public, all problems are public.
    """
    places: defaultdict[str, count[int]] = defaultdict(count)
    public = [next(places[problem.difficulty]) % 5 >= 5 - of_five for problem in problems]
    return public if any(public) else [True] * len(public)


def judge_answers(
    judge: Judge, problems: Sequence[Problem], answers: Sequence[Answer], deadline: float
) -> list[Judgement | None]:
    """Judge every program on all tests of its problem; return None for an answer without a program.

    Tests are started only until ``deadline`` (``time.monotonic``); later programs are not judged and count as unsolved.
    """
    programs = [
        (answer.source, problem.tests, Limits(problem.time_limit_s, problem.memory_limit_mib), len(problem.public))
        for problem, answer in zip(problems, answers, strict=True)
        if answer.source is not None
    ]
    judgements = iter(judge.judge_all(programs, deadline))
    return [None if answer.source is None else next(judgements) for answer in answers]
