"""What truths fitted to a sweep of our own have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from small_scaling_law.truth.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Swept(ABC):
    """A loss over width and compute, in x = ln(width / centre) and y = ln(FLOPs / target)."""

    name: str
    coefficients: tuple[float, ...]
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
    """Of the target's FLOPs that an answer may spend."""

    kind: ClassVar[str]
    """How a file names it."""

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return what a file says; residuals and origin stay in the file."""
        values = {field.name: content[field.name] for field in fields(cls)}
        return cls(**values | {"coefficients": tuple(content["coefficients"]), "widths": tuple(content["widths"])})

    @staticmethod
    @abstractmethod
    def starts(least: float) -> Sequence[Sequence[float]]:
        """Return coefficients from which a fit to losses of at least ``least`` may begin; the best end counts."""

    @cached_property
    def best(self) -> Run:
        """The least loss among the swept widths that answers may name, at the most FLOPs that they may spend."""
        first = -(-self.widths[0] // self.multiple_of) * self.multiple_of
        runs = []
        for width in range(first, self.widths[1] + 1, self.multiple_of):
            steps = int(self.most_share * self.target_flops / (self.flops_of_a_step * width**2))
            runs.append(Run(width, steps, self.loss(width, steps)))
        return min(runs, key=lambda run: run.loss)

    def loss(self, n_embd: int, max_iters: int) -> float:
        """Return the loss of a run in nats a token."""
        x = math.log(n_embd / self.centre)
        return self.loss_at(x, math.log(self.flops_of_a_step * n_embd**2 * max_iters / self.target_flops))

    @abstractmethod
    def loss_at(self, x: float, y: float) -> float:
        """Return the loss at a point of the plane, in nats a token."""
