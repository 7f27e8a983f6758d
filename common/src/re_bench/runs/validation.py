"""The report of a validation: a row with a verdict for each solution."""

from __future__ import annotations

import re
import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from re_bench.task.choices import calibrate_command
from re_bench.task.workspace import base_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from re_bench.scoring.attempt import Score
    from re_bench.task.discovery import TaskFolder

ANCHORED = ("baseline", "reference")
"""The solutions whose raw scores are the anchors."""

SUBMISSION = "--solution"
"""Name of the row for the submission that this option adds."""
_BASE_TOLERANCE = 0.01
"""How much a cheat's reward may exceed the reward of the solution it is derived from, unless that is the baseline."""
_MAX_REASON = 150


@dataclass(frozen=True)
class Row:
    """The scores of a solution, and whether they are as expected."""

    variant: str
    scores: Sequence[Score]
    passed: bool
    verdict: str
    """Why the solution passed or failed."""
    elapsed: Sequence[float] = ()
    """The duration of each scoring in seconds, including the time to build the solution."""

    @property
    def status(self) -> str:
        """The different statuses of the scores: ``valid``, or ``valid/invalid``."""
        return "/".join(dict.fromkeys(score.status for score in self.scores))

    @property
    def reward(self) -> float | None:
        """The mean of the scores' deciding rewards; None if a score has no reward."""
        return mean([score.deciding_reward for score in self.scores])

    @property
    def spread(self) -> float | None:
        """The standard deviation of the scores' deciding rewards; None if there are fewer than two."""
        rewards = [reward for score in self.scores if (reward := score.deciding_reward) is not None]
        return statistics.stdev(rewards) if len(rewards) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        scores = [score.to_dict() for score in self.scores]
        result = {"variant": self.variant, "scores": scores, "passed": self.passed, "verdict": self.verdict}
        return {**result, "elapsed": [round(seconds, 3) for seconds in self.elapsed]}


@dataclass(frozen=True)
class Report:
    """The outcome of validating one task in one profile."""

    task: str
    profile: str
    rows: Sequence[Row]
    note: str = ""
    """A remark on the scores, for example that they are modelled."""
    problems: Sequence[str] = field(default_factory=list)
    """Reasons why the task cannot be validated."""
    skipped: Sequence[str] = ()
    """Cheats that do not run in this profile."""
    seconds: float = 0.0
    """Seconds from the start of the first scoring to the end of the last."""

    @property
    def passed(self) -> bool:
        """Whether every solution passed and there are no problems."""
        return not self.problems and all(row.passed for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {**asdict(replace(self, rows=())), "rows": [row.to_dict() for row in self.rows], "passed": self.passed}


def not_run(task: TaskFolder, profile: str, reason: str) -> Report:
    """Return the report for a task that cannot run on this machine."""
    return Report(task.name, profile, (), problems=[f"cannot run here: {reason}"])


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean, or None if one of the values is missing."""
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if len(present) == len(values) else None


def judge(task: TaskFolder, variant: str, scores: Mapping[str, Sequence[Score]]) -> Row:
    """Return the row of a solution, with its verdict.

    Every reward of the baseline must be 0, and every reward of the reference 1, within the profile's tolerance. If the
    tolerance is at least 1, published anchors belong to other solutions, and only validity is checked.

    A cheat must fail as its ``cheat.toml`` says: either it must be refused, or its mean reward must not exceed the mean
    reward of its base (the solution that it is derived from) by more than 0.01, or by more than the baseline's
    tolerance if the base is the baseline. Other solutions only need to be valid.
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
    anchors = task.manifest.anchors(scores[0].profile)
    if tolerance >= 1 and anchors is not None and anchors.source.kind == "published":
        return True, "published anchors, not checked"
    target = 0.0 if variant == "baseline" else 1.0
    worst = max((score.deciding_reward or 0.0 for score in scores), key=lambda reward: abs(reward - target))
    within = abs(worst - target) <= tolerance
    return within, f"reward {target:g} +- {tolerance:g}" + ("" if within else f", got {worst:z.4f}")


def base_solution(task: TaskFolder, variant: str, profile: str) -> str:
    """Return a cheat's base, by default the baseline."""
    return base_of(task, variant, profile) or "baseline"


def may_be_valid(task: TaskFolder, variant: str, profile: str) -> bool:
    """Return whether a solution is a cheat that may be valid, as long as it scores no better than its base."""
    cheat = task.manifest.cheats.get(variant.removeprefix("cheats/"))
    return cheat is not None and cheat.expectation(profile).expect == "no_better"


def scores_above_base(task: TaskFolder, variant: str, scores: Mapping[str, Sequence[Score]]) -> bool:
    """Return whether a cheat is valid and its mean reward exceeds the reward of its base by more than the tolerance."""
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
    for score in own:
        if score.status == "error":
            return False, f"must be refused: {brief(score.message)}"
    if any(score.status == "valid" for score in own):
        base = base_solution(task, variant, own[0].profile)
        if _mean_reward(scores.get(base)) is None:
            return False, f"must be compared with the {base}, which has no reward"
        allowed = may_be_valid(task, variant, own[0].profile)
        harmless = not scores_above_base(task, variant, scores)
        outcome = f"no better than the {base}" if harmless else f"scores above the {base}"
        return allowed and harmless, outcome if allowed or not harmless else f"must be refused: {outcome}"
    cheat = task.manifest.cheats.get(variant.removeprefix("cheats/"))
    reason = cheat.expectation(own[0].profile).reason if cheat is not None else None
    if may_be_valid(task, variant, own[0].profile) and reason is None:
        # Without a pattern for the reason, a cheat that only crashes would pass.
        return False, f"refused, but cheat.toml expects no_better and has no reason: {brief(own[0].message)}"
    for score in own:
        if reason is not None and not re.search(reason, score.message):
            return False, f"refused for another reason than /{reason}/: {brief(score.message)}"
    return True, f"refused: {brief(own[0].message)}"


def brief(message: str) -> str:
    """Return a message on one line, truncated if it is long."""
    line = " ".join(message.split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 3] + "..."
