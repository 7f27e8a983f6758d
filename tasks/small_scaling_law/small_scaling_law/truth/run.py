"""One run, as all truths name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """A width, a number of steps, and the loss that they reach, in nats a token."""

    n_embd: int
    max_iters: int
    loss: float
