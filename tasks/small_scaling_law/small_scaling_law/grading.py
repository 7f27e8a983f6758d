"""The truth: what an answer spends, and the loss of any run that it may name. No sandbox ever shows any of this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from re_bench.api import RunAnchors
from re_bench.data.cache import cache_directory
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


def truth_file(profile: str, instance: int = 0) -> Path:
    """Return where the truth of an instance lies or will lie: with the task if it is shipped, else in the cache."""
    name = f"{profile}-{instance}.json" if instance else f"{profile}.json"
    shipped = Path(__file__).parent / "truth" / name
    return shipped if shipped.is_file() or not instance else cache_directory() / "small_scaling_law" / "truth" / name


def runs_file(profile: str, instance: int = 0) -> Path:
    """Return where the runs lie or will lie that the truth of an instance is fitted to, a line each."""
    truth = truth_file(profile, instance)
    return truth.with_name(f"{truth.stem}-runs.jsonl")


def open_truth(profile: str, instance: int = 0) -> Truth:
    """Return the truth of an instance.

    Raises:
        UsageError: if there is none.
    """
    content = _content(profile, instance)
    return KINDS[content["kind"]](content)


def open_anchors(profile: str, instance: int) -> RunAnchors | None:
    """Return the anchors that are kept with the truth of an instance; None of instance 0, whose are the profile's.

    Raises:
        UsageError: if there are none yet.
    """
    if instance == 0:
        return None
    anchors = _content(profile, instance).get("anchors")
    if anchors is None:
        raise UsageError(f"instance {instance} has no anchors yet; {_remedy(profile, instance)}")
    source = anchors["source"]
    where = f"of instance {instance}: {source['hardware']}, {source['date']}"
    return RunAnchors(anchors["starting"], anchors["reference"], where)


def _content(profile: str, instance: int) -> dict[str, Any]:
    path = truth_file(profile, instance)
    if not path.is_file():
        which = f"instance {instance} of profile {profile}" if instance else f"profile {profile}"
        raise UsageError(f"small_scaling_law has no truth for {which} yet; {_remedy(profile, instance)}")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def _remedy(profile: str, instance: int) -> str:
    return f"run: python tools/rebuild.py --profile {profile}" + (f" --instance {instance}" if instance else "")


def losses_of(truth: Truth, answer: Answer) -> tuple[float, float]:
    """Return what an answer's raw score lacks to 1, in nats: its regret, and the error of its prediction."""
    loss = truth.loss(answer.n_embd, answer.max_iters)
    return loss - truth.best.loss, abs(answer.loss_prediction - loss)


def raw_score(truth: Truth, answer: Answer) -> float:
    """Return an answer's raw score, in nats; 1 is the most that can be had."""
    return 1 - sum(losses_of(truth, answer))


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
