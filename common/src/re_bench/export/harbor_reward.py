"""What Harbor's verifier runs: score a workspace and write ``reward.json``, as Harbor reads it.

As a program: ``python3 -m re_bench.export.harbor_reward TASK --solution DIR --out reward.json [--profile P]
[--log FILE]``.

The file holds one flat object of finite numbers: ``reward`` and ``valid``, 1 or 0, and ``raw`` where there is a raw
score. An invalid submission has the reward 0. Where scoring fails for a reason of ours there is no file, so that the
trial counts as an exception and not as a score. Beside it ``score.json`` has all that the scorer says, for the
operator. The exit status is that of ``re-bench score``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.processes import cli_entry_point
from re_bench.runs.score_process import score_and_record, score_submission
from re_bench.sandbox import BACKENDS
from re_bench.scoring.score import EXIT_STATUS, describe
from re_bench.task.discovery import find_task
from re_bench.task.profile_names import add_profile_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from re_bench.runs.attempts import FinalScore
    from re_bench.scoring.score import Score
    from re_bench.task.discovery import Task

DETAILS = "score.json"
"""The file beside the rewards that has the whole score."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Score, write the file, and return the exit status."""
    parser = argparse.ArgumentParser(prog="harbor_reward", description="Score a workspace for Harbor.")
    parser.add_argument("task", metavar="TASK", help="a task's name or id, or its directory")
    parser.add_argument("--solution", metavar="DIR", type=Path, required=True, help="the submission's directory")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the file of the rewards")
    parser.add_argument("--log", metavar="FILE", type=Path, help="the attempts before this one: the final score counts")
    parser.add_argument(
        "--sandbox",
        choices=BACKENDS,
        help="what submissions run in; 'none' protects nothing and is recorded in the score",
    )
    add_profile_option(parser)
    options = parser.parse_args(arguments)
    with cli_entry_point("harbor_reward"):
        options.out.unlink(missing_ok=True)  # an older one would count where this scoring fails
        task = find_task(options.task)
        request = (task, options.solution, options.profile, options.sandbox)
        score, final = score_and_record(*request, options.log) if options.log else (score_submission(*request), None)
        print(describe(task, score), flush=True)
        _write(options.out.with_name(DETAILS), score.to_dict())
        rewards = rewards_of(task, score, final)
        if rewards is not None:
            _write(options.out, rewards)
    return EXIT_STATUS[score.status]


def rewards_of(task: Task, score: Score, final: FinalScore | None = None) -> dict[str, float] | None:
    """Return what Harbor is told of a score, or of the final score of all attempts; None for an error of ours.

    Raises:
        UsageError: if a valid score has no reward, because the profile has no anchors.
    """
    if score.status == "error":
        return None
    raw, reward = (score.raw_for_final, score.reward_for_final) if final is None else (final.raw, final.reward)
    attempts = {} if final is None else {"attempts": float(final.attempts)}
    if raw is None:
        return {"reward": 0.0, "valid": 0.0, **attempts}
    if reward is None:
        raise UsageError(f"{task.name}: no reward in profile {score.profile}, which has no anchors; calibrate it first")
    rewards = {"reward": reward, "valid": 1.0, "raw": raw, **attempts}
    if not all(math.isfinite(value) for value in rewards.values()):
        raise ReBenchError(f"{task.name}: a reward is not finite: {rewards}")
    return rewards


def _write(path: Path, value: dict[str, object] | dict[str, float]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give a file that can be written with --out") from None


if __name__ == "__main__":
    sys.exit(main())
