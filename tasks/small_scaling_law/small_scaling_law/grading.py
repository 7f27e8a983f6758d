"""The truth: the cost of an answer, and the loss of any run that it may name. No sandbox shows this.

The files of the truths are in ``truth``, next to the runs that they were fitted to.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from re_bench.api import RunAnchors
from re_bench.data.cache import cache_directory
from re_bench.errors import InvalidSubmissionError, UsageError
from small_scaling_law.profiles import MAX_SHARE, MIN_SHARE

if TYPE_CHECKING:
    from small_scaling_law.answer import Answer
    from small_scaling_law.profiles import Scale

TERMS = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1))
"""Exponents of x and y in a :class:`Surface`, one pair for each coefficient."""
_STEP = 1e-6  # in ln(width), for a slope


@dataclass(frozen=True)
class Run:
    """A width, a number of steps, and their loss in nats per token."""

    n_embd: int
    max_iters: int
    loss: float


@dataclass(frozen=True)
class Line:
    """A published truth: losses by steps, along the line of widths and steps with equal cost.

    The width follows from the steps, so an answer's width does not affect its loss. The scorer checks the cost.
    """

    name: str
    """Where it comes from, in a line."""
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    flops_of_a_step: float
    """At width 1."""
    target_flops: float

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the truth in a file of kind ``line``."""
        steps, losses = zip(*sorted(content["losses"]), strict=True)
        return cls(content["name"], steps, losses, content["flops_of_a_step"], content["target_flops"])

    @cached_property
    def best(self) -> Run:
        """The lowest loss of the table, which is the lowest of all."""
        loss, steps = min(zip(self.losses, self.steps, strict=True))
        return Run(round(math.sqrt(self.target_flops / self.flops_of_a_step / steps)), steps, loss)

    def loss(self, _n_embd: int, max_iters: int) -> float:
        """Return the loss after a number of steps: linear in its logarithm, constant beyond the ends of the table."""
        after = bisect_right(self.steps, max_iters)
        if after in (0, len(self.steps)):
            return self.losses[0 if after == 0 else -1]
        low, high = self.steps[after - 1], self.steps[after]
        share = math.log(max_iters / low) / math.log(high / low)
        return self.losses[after - 1] + share * (self.losses[after] - self.losses[after - 1])


@dataclass(frozen=True)
class Surface:
    """A measured truth: the loss as a smooth surface over width and compute, fitted to a sweep around the target.

    With x = ln(width / centre) and y = ln(FLOPs / target), the loss is a polynomial in both: cubic in x, because an
    iso-FLOP curve is a parabola that rises faster on one side, and linear in y, because answers spend between 0.5 and
    1.1 times the target. A law of Chinchilla's form, E + A / N^a + B / D^b (Hoffmann et al., arXiv 2203.15556, approach
    3), fits our small byte models worse: its residual over the sweep of profile ``gpu`` is 0.041 nats root mean square,
    that of the cubic 0.010. The truth is only evaluated near the sweep.

    Beyond the widths of the sweep it continues as a line that does not fall. More compute never raises it: where the
    polynomial would, at narrow widths, compute is ignored.
    """

    name: str
    """Where it comes from, in a line."""
    coefficients: tuple[float, ...]
    """Coefficients of :data:`TERMS`."""
    centre: float
    """The width at which x is 0."""
    widths: tuple[int, int]
    """The narrowest and the widest run of the sweep."""
    target_flops: float
    flops_of_a_step: float
    """At width 1."""
    multiple_of: int
    """Widths that an answer may name are multiples of this."""
    most_share: float
    """Shares of the target's FLOPs that an answer may spend."""

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the truth in a file of kind ``surface``, without residuals and origin."""
        values = {field.name: content[field.name] for field in fields(cls)}
        return cls(**values | {"coefficients": tuple(content["coefficients"]), "widths": tuple(content["widths"])})

    @cached_property
    def best(self) -> Run:
        """The lowest loss among the swept widths that answers may name, at the maximum FLOPs."""
        first = -(-self.widths[0] // self.multiple_of) * self.multiple_of
        runs = []
        for width in range(first, self.widths[1] + 1, self.multiple_of):
            steps = int(self.most_share * self.target_flops / (self.flops_of_a_step * width**2))
            runs.append(Run(width, steps, self.loss(width, steps)))
        return min(runs, key=lambda run: run.loss)

    def loss(self, n_embd: int, max_iters: int) -> float:
        """Return the loss of a run in nats per token: the polynomial, or the line."""
        x = math.log(n_embd / self.centre)
        y = math.log(self.flops_of_a_step * n_embd**2 * max_iters / self.target_flops)
        low, high = (math.log(width / self.centre) for width in self.widths)
        inside = min(max(x, low), high)
        outwards = 0.0 if x == inside else math.copysign(1.0, x - inside)
        slope = max(0.0, outwards * self._slope(inside, y))
        return self._value(inside, y) + slope * abs(x - inside)

    def _value(self, x: float, y: float) -> float:
        by_compute = sum(factor * x**i for factor, (i, j) in zip(self.coefficients, TERMS, strict=True) if j)
        at_target = sum(factor * x**i for factor, (i, j) in zip(self.coefficients, TERMS, strict=True) if not j)
        return at_target + min(0.0, by_compute) * y

    def _slope(self, x: float, y: float) -> float:
        return (self._value(x + _STEP, y) - self._value(x - _STEP, y)) / (2 * _STEP)


Truth = Line | Surface


def truth_file(profile: str, instance: int = 0) -> Path:
    """Return the path of an instance's truth: in the package if it is shipped, otherwise in the cache."""
    name = f"{profile}-{instance}.json" if instance else f"{profile}.json"
    shipped = Path(__file__).parent / "truth" / name
    return shipped if shipped.is_file() or not instance else cache_directory() / "small_scaling_law" / "truth" / name


def runs_file(truth: Path) -> Path:
    """Return the path of the runs that a truth is fitted to, one line each."""
    return truth.with_name(f"{truth.stem}-runs.jsonl")


def open_truth(profile: str, instance: int = 0) -> Truth:
    """Return the truth of an instance.

    Raises:
        UsageError: if there is none.
    """
    content = _content(profile, instance)
    return Line.from_json(content) if content["kind"] == "line" else Surface.from_json(content)


def open_anchors(profile: str, instance: int) -> RunAnchors | None:
    """Return the anchors stored with the truth of an instance; None for instance 0, which has the profile's.

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
    return f"run: {rebuild_command(profile, instance)}"


def rebuild_command(profile: str, instance: int) -> str:
    """Return the command that makes the truth of an instance."""
    return f"python -m small_scaling_law.rebuild --profile {profile}" + (f" --instance {instance}" if instance else "")


def losses_of(truth: Truth, answer: Answer) -> tuple[float, float]:
    """Return an answer's loss of raw score, in nats: its regret and the error of its prediction."""
    loss = truth.loss(answer.n_embd, answer.max_iters)
    return loss - truth.best.loss, abs(answer.loss_prediction - loss)


def raw_score(truth: Truth, answer: Answer) -> float:
    """Return an answer's raw score, in nats; at most 1."""
    return 1 - sum(losses_of(truth, answer))


def share_of_target(answer: Answer, scale: Scale) -> float:
    """Return the answer's share of the target's FLOPs.

    Raises:
        InvalidSubmissionError: if the width or the share is not allowed.
    """
    if answer.n_embd % scale.n_head:
        raise InvalidSubmissionError(f"n_embd must be a multiple of the {scale.n_head} heads, got {answer.n_embd}")
    flops = scale.flops(answer.n_embd, answer.max_iters)
    share = float(flops / scale.target_flops)
    if not MIN_SHARE <= share <= MAX_SHARE:
        side = f"over {MAX_SHARE:g} times" if share > MAX_SHARE else f"under {MIN_SHARE:g} times"
        raise InvalidSubmissionError(
            f"the answer spends {flops:.4g} FLOPs, {side} the target of {scale.target_flops:g} ({share:.3g} of it)"
        )
    return share
