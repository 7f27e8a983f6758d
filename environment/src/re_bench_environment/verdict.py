"""What an agent is told of an attempt: the text, the reward and the metadata of ``answer``.

A task with ``show_score = false`` says nothing of its score in text and metadata before the episode ends. The reward of
the protocol is for whoever trains or evaluates, not for the agent; it is there all the same, unless the server
withholds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re_bench.runs.attempts import FinalScore
    from re_bench.scoring.score import Score
    from re_bench.task.manifest import Manifest

__all__ = ["Verdict", "failure", "final_verdict", "interim_verdict"]

_OURS = "Something of ours failed, not your fault. Try again; if it goes on, tell the operator, whose log says why."
_FROM = {"min": "the lowest", "max": "the highest", "last": "the last"}


@dataclass(frozen=True)
class Verdict:
    """What a tool returns."""

    text: str
    reward: float = 0.0
    finished: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that no reward leaves that is no number: JSON would turn it into null.

        Raises:
            ValueError: if it is not finite.
        """
        if not math.isfinite(self.reward):
            raise ValueError(f"a reward must be finite, got {self.reward}")


def failure(text: str) -> Verdict:
    """Return what is said when a tool could not do its work; the episode goes on."""
    return Verdict(text, metadata={"status": "error", "message": text})


def interim_verdict(
    manifest: Manifest, score: Score, attempt: int, waited_s: float, *, withhold: bool = False
) -> Verdict:
    """Return what is said of an attempt while the episode goes on."""
    shown = manifest.show_score
    lines = [_headline(score, attempt), _message(score)]
    if score.status == "valid":
        lines.insert(1, _scores(manifest, score.raw, score.reward) if shown else "This task does not tell its score.")
    lines += _waited(waited_s)
    metadata = _metadata(score, attempt, waited_s)
    if not shown:
        metadata |= {"raw": None, "reward": None}
    reward = 0.0 if withhold and not shown else score.reward or 0.0
    return Verdict("\n".join(line for line in lines if line), reward, metadata=metadata)


def final_verdict(manifest: Manifest, score: Score, final: FinalScore, waited_s: float) -> Verdict:
    """Return what is said at the end: the score of all attempts, by the manifest's aggregation of raw scores.

    Args:
        manifest: the task's.
        score: that of the last attempt.
        final: that of all attempts, with the number of the last one.
        waited_s: how long the scoring had to wait.
    """
    raw, reward = final.raw, final.reward
    lines = [_headline(score, final.attempt), _message(score), "", "The episode has ended."]
    if raw is None:
        lines.append(f"None of {final.attempts} attempts was valid: there is no final score, and the reward is 0.")
    else:
        which = f"{_FROM[manifest.aggregation]} of {final.valid} valid attempts ({final.attempts} in all)"
        lines.append(f"Final score, {which}: {_scores(manifest, raw, reward)}")
    lines += _waited(waited_s)
    metadata = _metadata(score, final.attempt, waited_s)
    metadata["final"] = {
        "raw": raw,
        "reward": reward,
        "aggregation": manifest.aggregation,
        "attempts": final.attempts,
        "valid": final.valid,
    }
    return Verdict("\n".join(lines), reward or 0.0, finished=True, metadata=metadata)


def _headline(score: Score, attempt: int) -> str:
    words = {"valid": "valid", "invalid": "invalid", "error": "not scored"}
    return f"Attempt {attempt}: {words[score.status]}"


def _message(score: Score) -> str:
    """Return what the agent may read; an exception of the scorer's may hold what it may not."""
    return _OURS if score.status == "error" else score.message


def _scores(manifest: Manifest, raw: float | None, reward: float | None) -> str:
    better = f"{manifest.direction} is better"
    normalised = "no reward, since this profile has no anchors yet" if reward is None else f"reward {reward:.4f}"
    return f"raw score {raw:.6g} {manifest.unit} ({better}), {normalised}"


def _waited(seconds: float) -> list[str]:
    return [f"The scoring waited {seconds:.0f} s for its turn."] if seconds >= 1 else []


def _metadata(score: Score, attempt: int, waited_s: float) -> dict[str, Any]:
    return {
        "task": score.task,
        "profile": score.profile,
        "status": score.status,
        "message": _message(score),
        "raw": score.raw,
        "reward": score.reward,
        "attempt": attempt,
        "submission": score.submission or None,
        "seconds": score.seconds,
        "waited_s": round(waited_s, 3),
    }
