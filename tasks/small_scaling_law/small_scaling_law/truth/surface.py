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

from small_scaling_law.truth.swept import Swept

TERMS = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1))
"""Exponents of x and y, one pair for each coefficient."""
_STEP = 1e-6  # in ln(width), for a slope


@dataclass(frozen=True)
class Surface(Swept):
    """The fitted loss. Beyond the widths of the sweep it goes on in a line that does not fall.

    More compute raises it nowhere: where the polynomial would, at narrow widths, compute is left out.
    """

    kind = "surface"

    @staticmethod
    def starts(_least: float) -> list[list[float]]:
        """See :class:`.swept.Swept`."""
        return [[0.0] * len(TERMS)]

    def loss_at(self, x: float, y: float) -> float:
        """Return the polynomial, or the line."""
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
