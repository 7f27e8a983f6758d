"""A truth of our own: the loss as a smooth surface over width and compute, fitted to a sweep around the target.

With x = ln(width / w0) and y = ln(FLOPs / target), the loss is a polynomial in both: cubic in x, because an iso-FLOP
curve is a parabola that rises faster on one side, and linear in y, because answers spend between 0.5 and 1.1 times the
target. A law of Chinchilla's form, E + A / N^a + B / D^b (Hoffmann et al., arXiv 2203.15556, approach 3), fits our
small byte models worse: over the 33 runs of a first study (4 to 128 wide, 1e10 to 5e12 FLOPs) it left 0.085 nats root
mean square, a quadratic in both logarithms 0.044, a cubic 0.026, with seeds some 0.03 apart. The truth is asked only
near the sweep, where smoothness is all that it needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from truth.run import Run

__all__ = ["TERMS", "Surface"]

TERMS = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1))
"""Exponents of x and y, one pair for each coefficient."""


@dataclass(frozen=True)
class Surface:
    """The fitted loss. Beyond the widths of the sweep it goes on in a line that does not fall."""

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

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """Return what a file of kind ``surface`` says; residuals and origin stay in the file."""
        values = {key: found[key] for key in cls.__dataclass_fields__}
        return cls(**values | {"coefficients": tuple(found["coefficients"]), "widths": tuple(found["widths"])})

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
        x, y = self.coordinates(n_embd, self.flops_of_a_step * n_embd**2 * max_iters)
        low, high = (math.log(width / self.centre) for width in self.widths)
        inside = min(max(x, low), high)
        outwards = 0.0 if x == inside else math.copysign(1.0, x - inside)
        slope = max(0.0, outwards * self._slope(inside, y))
        return self._value(inside, y) + slope * abs(x - inside)

    def coordinates(self, n_embd: int, flops: float) -> tuple[float, float]:
        """Return x and y of a run."""
        return math.log(n_embd / self.centre), math.log(flops / self.target_flops)

    def _value(self, x: float, y: float) -> float:
        return sum(factor * x**i * y**j for factor, (i, j) in zip(self.coefficients, TERMS, strict=True))

    def _slope(self, x: float, y: float) -> float:
        return sum(
            factor * i * x ** (i - 1) * y**j for factor, (i, j) in zip(self.coefficients, TERMS, strict=True) if i
        )
