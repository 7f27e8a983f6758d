"""The sizes of the task: one entry for each profile, which scorer, preparation, sweep and workspace all read.

It stands alone, because agents get a copy of it, as ``scales.py``. Further instances of a profile: ``instances.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MIN_SHARE, MAX_SHARE = 0.5, 1.1
"""Of the target's FLOPs that an answer may spend; the upper one is the original's."""


@dataclass(frozen=True)
class Experiments:
    """What a run consists of beside width and steps, and how much of it an agent may spend."""

    text: str
    """The prepared text whose bytes are the tokens, by its name for ``re_bench.text.open_text``."""
    run_flops: float
    """The most of one run."""
    total_flops: float
    """The most of all runs together."""
    learning_rate: float
    """The highest at width ``rate_width``; it goes with the width to the power ``-rate_power``."""
    rate_width: int
    rate_power: float
    bfloat16_from: int | None = None
    """The width from which on products are in bfloat16; None for never."""
    validation_windows: int = 2_048
    vocabulary: int = 256
    symbols: int | None = None
    """To which the bytes of the text are reduced, the end of a document included; None leaves them as they are."""
    noise: float = 0.0
    """Share of the symbols that are replaced by random ones."""


@dataclass(frozen=True)
class Scale:
    """One profile."""

    target_flops: float
    """Of the run whose outcome is to be predicted."""
    context: int
    """Tokens of a window."""
    batch: int
    """Windows of a step."""
    default: tuple[int, int, float]
    """The starting solution: n_embd, max_iters, loss_prediction."""
    experiments: Experiments | None
    """None if there are none: profile ``paper`` does not know how the published runs were trained."""
    n_layer: int = 4
    n_head: int = 1
    """The width must be a multiple of it."""

    def tokens(self, max_iters: int) -> int:
        """Return the tokens that so many steps train on."""
        return self.batch * self.context * max_iters

    def flops(self, n_embd: int, max_iters: int) -> int:
        """Return the floating-point operations of a run by the original's formula.

        6 for each of the 12 n_layer n_embd^2 parameters of the blocks and each token; embeddings and attention are
        not counted.
        """
        return 72 * self.n_layer * n_embd**2 * self.tokens(max_iters)

    def experiment_flops(self, n_embd: int, max_iters: int) -> int:
        """Return what an experiment is charged: its training, but no less than the measurement of its loss.

        That is a forward pass over the validation windows, 2 for each parameter of the blocks and each token. So time
        follows the charge within a factor of two also where a run has few steps.

        Raises:
            ValueError: if the profile has no experiments.
        """
        if self.experiments is None:
            raise ValueError("the profile has no experiments")
        validation = 24 * self.n_layer * n_embd**2 * self.experiments.validation_windows * self.context
        return max(self.flops(n_embd, max_iters), validation)

    def steps(self, n_embd: int, flops: float) -> int:
        """Return the number of steps of this width that comes nearest to ``flops``; at least one."""
        return max(1, round(flops / self.flops(n_embd, 1)))


SCALES = {
    "cpu": Scale(
        target_flops=5e12,
        context=64,
        batch=8,
        default=(128, 1_560, 2.0),
        experiments=Experiments(
            text="docstrings-2048",
            run_flops=1e11,
            total_flops=2.5e12,
            learning_rate=0.01,
            rate_width=32,
            rate_power=0.5,
        ),
        n_head=4,
    ),
    "gpu": Scale(
        target_flops=5e13,
        context=128,
        batch=8,
        default=(192, 3_449, 1.7),
        experiments=Experiments(
            text="sources-4096",
            run_flops=1e12,
            total_flops=2.5e13,
            learning_rate=0.01,
            rate_width=32,
            rate_power=0.5,
            bfloat16_from=256,
        ),
        n_head=4,
    ),
    "paper": Scale(target_flops=5e17, context=1024, batch=64, default=(1000, 20_000, 4.4), experiments=None),
}
"""The profiles by name. An answer has no score in one without a file in ``truth``."""


def chosen(workspace: Path) -> Scale:
    """Return the sizes of a workspace, which are in its ``profile.json``."""
    values = json.loads((workspace / "profile.json").read_text(encoding="utf-8"))["scale"]
    experiments = values["experiments"]
    values["default"] = tuple(values["default"])
    return Scale(**values | {"experiments": experiments and Experiments(**experiments)})
