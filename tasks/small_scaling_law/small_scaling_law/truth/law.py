"""A truth of our own as a law: E + A / N^a + B / D^b, with N parameters and D tokens.

The form is Chinchilla's (Hoffmann et al., arXiv 2203.15556, approach 3). Towards few tokens the loss rises ever faster,
which it follows and a polynomial does not: over 46 runs around 5e15 FLOPs, near the floor of their loss, it left 0.0055
nats root mean square with five coefficients, a cubic in the width 0.0246 with six. Of the sweeps here the cubic leaves
less: 0.010 in ``gpu``, where this leaves 0.041.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from small_scaling_law.truth.swept import Swept


@dataclass(frozen=True)
class Law(Swept):
    """The fitted loss. Coefficients: E, ln(A / N^a) at the centre and the target's compute, a, ln(B / D^b) there, b."""

    kind = "law"

    @staticmethod
    def starts(least: float) -> list[tuple[float, ...]]:
        """See :class:`.swept.Swept`."""
        part = math.log(0.05 * least)
        return [(0.9 * least, part, a, part, b) for a in (0.3, 0.6) for b in (0.5, 1.5)]

    def loss_at(self, x: float, y: float) -> float:
        """Return the loss: parameters go with the square of the width, and tokens with what compute they leave."""
        floor, parameters, a, tokens, b = self.coefficients
        return floor + math.exp(parameters - a * 2 * x) + math.exp(tokens - b * (y - 2 * x))
