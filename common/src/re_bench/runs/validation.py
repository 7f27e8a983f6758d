"""What a validation has found: a row for each solution, with its verdict."""

from __future__ import annotations

import re
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from re_bench.task.choices import calibrate_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench.scoring.attempt import Score
    from re_bench.task.discovery import TaskFolder

ANCHORED = ("baseline", "reference")
"""The solutions that the scale is made from."""

SUBMISSION = "--solution"
"""The row of a submission that is scored beside our solutions."""
_BASE_TOLERANCE = 0.01
"""The reward that a cheat may have above its honest base."""
_LONGEST_REASON = 150


@dataclass(frozen=True)
class Row:
    """One of our solutions, scored once or more, and whether it came out as expected."""

    variant: str
    scores: Sequence[Score]
    passed: bool
    verdict: str
    """Why it holds or not."""
    elapsed: Sequence[float] = ()
    """Seconds of each scoring from its start to its end, with laying out and making the solution."""

    @property
    def status(self) -> str:
        """The statuses of its scores, each once: ``valid``, or ``valid/invalid``."""
        return "/".join(dict.fromkeys(score.status for score in self.scores))

    @property
    def reward(self) -> float | None:
        """The mean reward for the final score over the repeats, or None if one of them was not valid."""
        return mean([score.deciding_reward for score in self.scores])

    @property
    def spread(self) -> float | None:
        """The standard deviation of the reward over the repeats."""
        rewards = [reward for score in self.scores if (reward := score.deciding_reward) is not None]
        return statistics.stdev(rewards) if len(rewards) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the row."""
        scores = [score.to_dict() for score in self.scores]
        told = {"variant": self.variant, "scores": scores, "passed": self.passed, "verdict": self.verdict}
        return {**told, "elapsed": [round(seconds, 3) for seconds in self.elapsed]}


@dataclass(frozen=True)
class Report:
    """The outcome of validating one task in one profile."""

    task: str
    profile: str
    rows: Sequence[Row]
    note: str = ""
    """What a reader must know of the figures, such as that they are modelled."""
    problems: Sequence[str] = field(default_factory=list)
    """What is wrong with the task as a whole."""
    skipped: Sequence[str] = ()
    """The cheats that are not for this profile, so that they were not scored."""
    seconds: float = 0.0
    """What the validation took, from its beginning to its end."""

    @property
    def passed(self) -> bool:
        """Whether every solution came out as expected and nothing else is wrong."""
        return not self.problems and all(row.passed for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the report."""
        return {**asdict(replace(self, rows=())), "rows": [row.to_dict() for row in self.rows], "passed": self.passed}


def not_run(task: TaskFolder, profile: str, reason: str) -> Report:
    """Return the report of a task of which nothing was scored, since it cannot run here."""
    return Report(task.name, profile, (), problems=[f"cannot run here: {reason}"])


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if one of the values is missing."""
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if len(present) == len(values) else None


def judge(task: TaskFolder, variant: str, scores: Mapping[str, Sequence[Score]]) -> Row:
    """Return the row of a solution: whether baseline or reference has its reward, or a cheat has failed as expected.

    A cheat must not exceed the baseline by more than the baseline's tolerance, or the honest base that it names by more
    than 0.01; means over the repeats are compared.

    Args:
        task: the task.
        variant: ``baseline``, ``reference``, ``cheats/NAME``, or anything else, which must only be valid.
        scores: those of all solutions, by variant, one for each repeat.
    """
    if variant in ANCHORED:
        passed, verdict = _judge_anchor(task, variant, scores[variant])
    elif variant.startswith("cheats/"):
        passed, verdict = _judge_cheat(task, variant, scores)
    else:
        passed = all(score.status == "valid" for score in scores[variant])
        verdict = brief(scores[variant][0].message)
    return Row(variant, scores[variant], passed, verdict)


def _judge_anchor(task: TaskFolder, variant: str, scores: Sequence[Score]) -> tuple[bool, str]:
    for score in scores:
        if score.status != "valid":
            return False, f"must be valid: {brief(score.message)}"
        if score.reward is None:
            return False, f"no anchors for profile {score.profile}; run {calibrate_command(task, score.profile)}"
    tolerance = getattr(task.manifest.profiles[scores[0].profile].tolerance, variant)
    target = 0.0 if variant == "baseline" else 1.0
    worst = max((score.deciding_reward or 0.0 for score in scores), key=lambda reward: abs(reward - target))
    within = abs(worst - target) <= tolerance
    return within, f"reward {target:g} +- {tolerance:g}" + ("" if within else f", got {worst:z.4f}")


def base_solution(task: TaskFolder, variant: str, profile: str) -> str:
    """Return what a cheat is derived from and compared with: what the manifest names, else the baseline."""
    cheat = task.manifest.cheats.get(variant.removeprefix("cheats/"))
    return (cheat.expectation(profile).derived_from if cheat is not None else None) or "baseline"


def scores_above_base(task: TaskFolder, variant: str, scores: Mapping[str, Sequence[Score]]) -> bool:
    """Return whether a cheat is valid and its mean reward above its honest base's by more than the margin.

    Args:
        task: the task.
        variant: ``cheats/NAME``.
        scores: those of all solutions, by variant.
    """
    rewards = [score.deciding_reward for score in scores[variant] if score.status == "valid"]
    profile = scores[variant][0].profile
    base = base_solution(task, variant, profile)
    floor = _mean_reward(scores.get(base))
    if not rewards or floor is None:
        return False
    tolerance = task.manifest.profiles[profile].tolerance.baseline
    reward = mean(rewards)
    return reward is None or reward > floor + (tolerance if base == "baseline" else _BASE_TOLERANCE)


def _mean_reward(scores: Sequence[Score] | None) -> float | None:
    return mean([score.deciding_reward for score in scores]) if scores else None


def _judge_cheat(task: TaskFolder, variant: str, scores: Mapping[str, Sequence[Score]]) -> tuple[bool, str]:
    own = scores[variant]
    cheat = task.manifest.cheats.get(variant.removeprefix("cheats/"))
    expectation = cheat.expectation(own[0].profile) if cheat is not None else None
    for score in own:
        if score.status == "error":
            return False, f"must be refused: {brief(score.message)}"
    if any(score.status == "valid" for score in own):
        base = base_solution(task, variant, own[0].profile)
        if _mean_reward(scores.get(base)) is None:
            return False, f"must be compared with the {base}, which has no reward"
        may_be_valid = expectation is not None and expectation.expect == "no_better"
        harmless = not scores_above_base(task, variant, scores)
        outcome = f"no better than the {base}" if harmless else f"scores above the {base}"
        return may_be_valid and harmless, outcome if may_be_valid or not harmless else f"must be refused: {outcome}"
    reason = expectation.reason if expectation is not None else None
    if expectation is not None and expectation.expect == "no_better" and reason is None:
        # Else a cheat that crashes, and never cheats, would pass for a scorer that holds.
        return False, f"refused, where no_better is expected without a reason to refuse it: {brief(own[0].message)}"
    for score in own:
        if reason is not None and not re.search(reason, score.message):
            return False, f"refused for another reason than /{reason}/: {brief(score.message)}"
    return True, f"refused: {brief(own[0].message)}"


def brief(message: str) -> str:
    """Return a message on one line, its end left out if it is long."""
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."
