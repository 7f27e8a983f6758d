"""Which program of a problem's pool the stand-in model answers with.

All odds are in :data:`ODDS` and the constants below it. **They are our choice.** They are modelled on nothing but the
order of magnitude of a weak chat model, and set so that each step of a careful system shows: a score from the stand-in
says how well a system uses such a model, not how well any real model does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING

from re_bench_gateway.standin.asking import Report
from re_bench_gateway.standin.problems import ACCEPTED, COMPILE_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench_gateway.standin.problems import Problem, Program

__all__ = ["ODDS", "Odds", "Talent", "choose"]


@dataclass(frozen=True)
class Odds:
    """Probabilities of a difficulty, before talent and prompt.

    Attributes:
        first: that a program asked for without more is right.
        blind: that the model never finds the idea of a problem: without a report it is never right.
        mended: that a program that does not compile comes back compiling, given the compiler's message.
        mended_right: that it is right then, if of all programs it was most like a right one.
        tested: that a wrong program comes back right, given a failing test.
    """

    first: float
    blind: float
    mended: float
    mended_right: float
    tested: float


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
"""How often a flawed answer has each verdict, if the pool has it."""

REASONING = 1.25
"""Factor of all odds of a right answer if the prompt asks to reason about algorithm and limits first."""
COMPLAINT = 1.2
"""Factor of the odds of a right answer if a wrong one is shown with a complaint only."""
BLIND = 0.25
"""Factor of the odds of a right answer to a report, on a problem of which the model does not find the idea."""
UNLIKE = 0.5
"""Factor of the odds that a mended program is right if it was more like a wrong one."""
STUBBORN = 0.4
"""Probability that an answer to a report that is no better is the same program again."""
KEPT, KEPT_AGAINST_REPORT = 0.85, 0.5
"""Probabilities that a right program that is shown comes back, without and with something against it."""
HIGHEST = 0.9
"""No odds of a right answer are higher."""


class Talent:
    """What the model brings to a problem, fixed by the problem and the seed.

    Attributes:
        blind: whether it never finds the idea of the problem.
        factor: factor of the odds of right answers, from 0.5 to 1.5.
        habits: a weight of every program of the pool: a model makes the same mistakes again.
    """

    def __init__(self, problem: Problem, seed: int, odds: Odds) -> None:
        draw = random.Random(f"{seed} talent {problem.key}")
        self.blind = draw.random() < odds.blind
        self.factor = draw.uniform(0.5, 1.5)
        self.habits = {program: draw.uniform(0.3, 1.7) for program in problem.programs}

    def likely(self, programs: Sequence[Program], draw: random.Random) -> Program:
        """Choose one of the programs by verdict, then by habit."""
        verdicts = sorted({program.verdict for program in programs})
        verdict = draw.choices(verdicts, [FLAWS.get(each, 0.1) for each in verdicts])[0]
        among = [program for program in programs if program.verdict == verdict]
        return draw.choices(among, [self.habits[program] for program in among])[0]


def choose(
    problem: Problem,
    odds: Odds,
    talent: Talent,
    draw: random.Random,
    *,
    reasoning: bool = False,
    shown: Program | None = None,
    report: Report = Report.NONE,
) -> Program:
    """Choose a program to answer with.

    Args:
        problem: the problem that is asked about.
        odds: those of its difficulty.
        talent: what the model brings to it.
        draw: decides.
        reasoning: whether the prompt asks for reasoning first.
        shown: the program of the pool that the conversation shows.
        report: what it says about that program.
    """
    factor = talent.factor * (REASONING if reasoning else 1.0)
    unaided = 0.0 if talent.blind else factor
    if shown is None:
        return _afresh(problem, talent, odds.first * unaided, draw)
    if shown.verdict == ACCEPTED:
        kept = KEPT if report is Report.NONE else KEPT_AGAINST_REPORT
        return shown if draw.random() < kept else _afresh(problem, talent, odds.first * unaided, draw)
    aided = factor * (BLIND if talent.blind else 1.0)
    if report is Report.COMPILER and draw.random() < odds.mended:
        return _mended(problem, shown, odds.mended_right * aided, draw)
    right = odds.tested * aided if report is Report.TEST else odds.first * unaided * COMPLAINT
    return _again(problem, talent, shown, 0.0 if report is Report.COMPILER else right, draw)


def _afresh(problem: Problem, talent: Talent, right: float, draw: random.Random) -> Program:
    if draw.random() < min(right, HIGHEST):
        return talent.likely(problem.correct, draw)
    return talent.likely(problem.flawed, draw)


def _again(problem: Problem, talent: Talent, shown: Program, right: float, draw: random.Random) -> Program:
    """Answer to what is said against a program: a right one, the same one, or another flawed one."""
    if draw.random() < min(right, HIGHEST):
        return nearest(shown, tuple(problem.correct))
    others = [program for program in problem.flawed if program != shown]
    return shown if not others or draw.random() < STUBBORN else talent.likely(others, draw)


def _mended(problem: Problem, shown: Program, right: float, draw: random.Random) -> Program:
    """Answer to a compiler's message with what compiles: a right program, or the likest wrong one."""
    compiling = tuple(program for program in problem.programs if program.verdict != COMPILE_ERROR)
    likest = nearest(shown, compiling)
    odds = right if likest.verdict == ACCEPTED else right * UNLIKE
    wrong = tuple(program for program in compiling if program.verdict != ACCEPTED)
    return nearest(shown, wrong if wrong and draw.random() >= min(odds, HIGHEST) else tuple(problem.correct))


@cache
def nearest(program: Program, among: tuple[Program, ...]) -> Program:
    """Return that of some programs which shares most lines with another one."""
    lines = program.source.splitlines()
    return max(among, key=lambda each: SequenceMatcher(None, lines, each.source.splitlines(), autojunk=False).ratio())
