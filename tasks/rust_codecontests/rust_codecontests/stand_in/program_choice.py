"""Choose the program of a problem's pool with which the stand-in model answers.

All odds are in :data:`ODDS` and the constants below it. **They are our choice**, with the order of magnitude of a weak
chat model, and set so that each step of a careful system has an effect. A score measures how well a system uses such a
model, not how well any real model does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING

from rust_codecontests.stand_in.problems import ACCEPTED, COMPILE_ERROR
from rust_codecontests.stand_in.prompt_reading import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rust_codecontests.stand_in.problems import Problem, Program
    from rust_codecontests.stand_in.prompt_reading import Prompt


@dataclass(frozen=True)
class Odds:
    """Probabilities of a difficulty, before the model's ability and the prompt."""

    first: float
    """Probability that a program is right with a plain prompt."""
    blind: float
    """Probability that the model misses the idea of a problem: it is never right without a report."""
    mended: float
    """Probability that a program that does not compile is fixed, given the compiler's message."""
    mended_right: float
    """Probability that it is right then, if it is not the most similar program."""
    tested: float
    """Probability of a right program, given a failing test."""


ODDS: Mapping[str, Odds] = {
    "easy": Odds(first=0.40, blind=0.05, mended=0.85, mended_right=0.80, tested=0.55),
    "medium": Odds(first=0.22, blind=0.15, mended=0.75, mended_right=0.60, tested=0.35),
    "hard": Odds(first=0.09, blind=0.40, mended=0.55, mended_right=0.35, tested=0.15),
}

FLAWS: Mapping[str, float] = {
    COMPILE_ERROR: 0.58,
    "wrong answer": 0.27,
    "time limit": 0.08,
    "runtime error": 0.05,
    "memory limit": 0.02,
}
"""Shares of the verdicts among flawed answers, if the pool has them."""

REASONING = 1.25
"""Factor of all odds of a right answer if the prompt asks to reason about algorithm and limits first."""
COMPLAINT = 1.2
"""Factor of the odds of a right answer if a wrong one is shown with a complaint only."""
BLIND = 0.25
"""Factor of the odds of a right answer to a report, on a problem whose idea the model misses."""
LIKEST = 0.5
"""Probability that a repaired program is the compiling one that shares most lines with the one shown."""
STUBBORN = 0.4
"""Probability that an answer to a report that is no better is the same program again."""
KEPT = 0.85
"""Probability that a shown program is returned if the prompt does not criticise it."""
HIGHEST = 0.9
"""Maximum odds of a right answer."""


class ProgramChooser:
    """Chooses among the programs of one problem.

    Problem and seed fix the model's ability: whether it misses the idea, a factor from 0.5 to 1.5 for the odds of right
    answers, and a weight of every program, because a model repeats its mistakes.
    """

    def __init__(self, problem: Problem, odds: Odds, seed: int) -> None:
        draw = random.Random(f"{seed} talent {problem.key}")
        self._problem, self._odds = problem, odds
        self._blind = draw.random() < odds.blind
        self._ability = draw.uniform(0.5, 1.5)
        self._habits = {program: draw.uniform(0.3, 1.7) for program in problem.programs}

    def choose(self, prompt: Prompt, draw: random.Random) -> Program:
        """Choose the program for a prompt with ``draw``.

        Neither the probability that a shown program is returned nor its replacement depends on its verdict, because a
        model cannot know whether it is right. Only compile errors are visible.
        """
        shown, report = prompt.shown, prompt.report
        factor = self._ability * (REASONING if prompt.reasoning else 1.0)
        unaided = self._odds.first * (0.0 if self._blind else factor)
        if shown is None:
            return self._afresh(unaided, draw)
        if report is Report.NONE:
            return shown if draw.random() < KEPT else self._afresh(unaided, draw)
        aided = factor * (BLIND if self._blind else 1.0)
        if report is Report.COMPILER:
            if draw.random() < self._odds.mended:
                return self._mended(shown, self._odds.mended_right * aided, draw)
            return self._again(shown, 0.0, draw)
        return self._again(shown, self._odds.tested * aided if report is Report.TEST else unaided * COMPLAINT, draw)

    def _afresh(self, right: float, draw: random.Random) -> Program:
        """Answer independently of a shown program: a right one with the probability ``right``."""
        return self._likely(
            self._problem.correct if draw.random() < min(right, HIGHEST) else self._problem.flawed, draw
        )

    def _again(self, shown: Program, right: float, draw: random.Random) -> Program:
        """Answer to criticism of a program: a right one, the same one, or a flawed one."""
        if draw.random() < min(right, HIGHEST):
            return self._likely(self._problem.correct, draw)
        return shown if draw.random() < STUBBORN else self._likely(self._problem.flawed, draw)

    def _mended(self, shown: Program, right: float, draw: random.Random) -> Program:
        """Answer to a compiler's message: the most similar compiling program, a right one or a flawed one."""
        compiling = tuple(program for program in self._problem.programs if program.verdict != COMPILE_ERROR)
        if draw.random() < LIKEST:
            return nearest(shown, compiling)
        wrong = [program for program in compiling if program.verdict != ACCEPTED]
        return self._likely(self._problem.correct if draw.random() < min(right, HIGHEST) or not wrong else wrong, draw)

    def _likely(self, programs: Sequence[Program], draw: random.Random) -> Program:
        """Choose one of the programs by verdict, then by habit."""
        verdicts = sorted({program.verdict for program in programs})
        # "accepted" has no share because it is alone.
        verdict = draw.choices(verdicts, [FLAWS.get(verdict, 1.0) for verdict in verdicts])[0]
        candidates = [program for program in programs if program.verdict == verdict]
        return draw.choices(candidates, [self._habits[program] for program in candidates])[0]


@cache
def nearest(program: Program, candidates: tuple[Program, ...]) -> Program:
    """Return the candidate that shares most lines with a program."""
    lines = program.source.splitlines()

    def similarity(candidate: Program) -> float:
        return SequenceMatcher(None, lines, candidate.source.splitlines(), autojunk=False).ratio()

    return max(candidates, key=similarity)
