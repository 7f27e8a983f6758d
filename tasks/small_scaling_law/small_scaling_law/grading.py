"""The truth: what an answer spends, and the loss of any run that it may name. No sandbox ever shows any of this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from re_bench.errors import InvalidSubmissionError, UsageError
from small_scaling_law.profiles import LEAST_SHARE, MOST_SHARE
from small_scaling_law.truth.law import Law
from small_scaling_law.truth.line import Line
from small_scaling_law.truth.surface import Surface

if TYPE_CHECKING:
    from collections.abc import Callable

    from small_scaling_law.answer import Answer
    from small_scaling_law.profiles import Scale
    from small_scaling_law.truth.run import Run


class Truth(Protocol):
    """What a truth can say."""

    @property
    def name(self) -> str:
        """Where it comes from, in a line."""

    @property
    def best(self) -> Run:
        """The run of the least loss among all that an answer may name."""

    def loss(self, n_embd: int, max_iters: int, /) -> float:
        """Return the loss of a run in nats a token."""


KINDS: dict[str, Callable[[dict[str, Any]], Truth]] = {
    "line": Line.from_json,
    "law": Law.from_json,
    "surface": Surface.from_json,
}
"""By the name in a file: what makes the truth of its content."""


def truth_file(profile: str) -> Path:
    """Return where the truth of a profile lies or will lie."""
    return Path(__file__).parent / "truth" / f"{profile}.json"


def runs_file(profile: str) -> Path:
    """Return where the runs lie or will lie that the truth of a profile is fitted to, a line each."""
    return truth_file(profile).with_name(f"{profile}-runs.jsonl")


def open_truth(profile: str) -> Truth:
    """Return the truth of a profile.

    Raises:
        UsageError: if there is none.
    """
    path = truth_file(profile)
    if not path.is_file():
        raise UsageError(
            f"small_scaling_law has no truth for profile {profile} yet; run: python tools/sweep.py --profile {profile}"
        )
    content = json.loads(path.read_text(encoding="utf-8"))
    return KINDS[content["kind"]](content)


def share_of_target(answer: Answer, scale: Scale) -> float:
    """Return the answer's share of the target's FLOPs.

    Raises:
        InvalidSubmissionError: if no model has that width, or the share is not one that an answer may spend.
    """
    if answer.n_embd % scale.n_head:
        raise InvalidSubmissionError(f"n_embd must be a multiple of the {scale.n_head} heads, got {answer.n_embd}")
    flops = scale.flops(answer.n_embd, answer.max_iters)
    share = float(flops / scale.target_flops)
    if not LEAST_SHARE <= share <= MOST_SHARE:
        side = f"over {MOST_SHARE:g} times" if share > MOST_SHARE else f"under {LEAST_SHARE:g} times"
        raise InvalidSubmissionError(
            f"the answer spends {flops:.4g} FLOPs, {side} the target of {scale.target_flops:g} ({share:.3g} of it)"
        )
    return share
