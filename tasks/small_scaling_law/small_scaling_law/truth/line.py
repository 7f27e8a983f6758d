"""A published truth: losses along the line of widths and steps that cost the same."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from small_scaling_law.truth.run import Run


@dataclass(frozen=True)
class Line:
    """Losses by steps; the width follows from the steps, so that an answer's own width does not count.

    That an answer is near the line is for the scorer to check, by what it spends.
    """

    name: str
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    flops_of_a_step: float
    """At width 1."""
    target_flops: float

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return what a file of kind ``line`` says."""
        steps, losses = zip(*sorted(content["losses"]), strict=True)
        return cls(content["name"], steps, losses, content["flops_of_a_step"], content["target_flops"])

    @cached_property
    def best(self) -> Run:
        """The least loss of the table; between two of its entries there is none lower."""
        loss, steps = min(zip(self.losses, self.steps, strict=True))
        return Run(round(math.sqrt(self.target_flops / self.flops_of_a_step / steps)), steps, loss)

    def loss(self, _n_embd: int, max_iters: int) -> float:
        """Return the loss after so many steps: linear in their logarithm, constant beyond the ends of the table."""
        after = bisect_right(self.steps, max_iters)
        if after in (0, len(self.steps)):
            return self.losses[0 if after == 0 else -1]
        low, high = self.steps[after - 1], self.steps[after]
        share = math.log(max_iters / low) / math.log(high / low)
        return self.losses[after - 1] + share * (self.losses[after] - self.losses[after - 1])
