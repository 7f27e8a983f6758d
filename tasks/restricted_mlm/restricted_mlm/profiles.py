"""The sizes of the task: one entry for each profile, which scorer, preparation and workspace all read."""

from __future__ import annotations

from dataclasses import dataclass

MASKED_SHARE = 0.15
"""The probability with which a position is masked, each for itself."""


@dataclass(frozen=True)
class Baseline:
    """The starting model and how it is trained."""

    width: int
    """Of the embedding."""
    hidden: tuple[int, ...]
    """Widths of the hidden layers between the flattened embeddings and the outputs of all positions."""
    steps: int
    batch: int
    learning_rate: float = 1e-3
    seed: int = 1


@dataclass(frozen=True)
class Budget:
    """What the instructions recommend to spend on the final training, and what our reference spends at most."""

    minutes: int
    hardware: str


@dataclass(frozen=True)
class Profile:
    """One profile."""

    text: str
    """The prepared text, by its name for :func:`re_bench.text.open_text`."""
    vocabulary: int
    """Token ids, the mask's included."""
    mask_id: int
    batch: int
    """Windows that the model is exported and scored with at a time."""
    batches: int | None
    """The most batches that are scored, of windows that do not overlap; None for all."""
    floor: float
    """What is taken from the loss before the logarithm, in nats; no model reaches it."""
    baseline: Baseline
    budget: Budget
    max_operations: float
    """Of one batch; ``sandboxed/restricted/plan.py`` says what counts as one."""
    max_elements: int
    """Of one tensor."""
    max_bytes: int
    """Of all tensors of a model together."""
    length: int = 128
    """Tokens in a window."""


PROFILES = {
    "cpu": Profile(
        text="docstrings-2048",
        vocabulary=2049,
        mask_id=2048,
        batch=8,
        batches=None,
        floor=0.6,
        baseline=Baseline(width=64, hidden=(256, 256), steps=100, batch=16),
        budget=Budget(60, "two CPU cores"),
        max_operations=4e10,
        max_elements=1 << 26,
        max_bytes=256 << 20,
    ),
    "gpu": Profile(
        text="sources-4096",
        vocabulary=4097,
        mask_id=4096,
        batch=32,
        batches=None,
        floor=0.2,
        baseline=Baseline(width=256, hidden=(2048, 2048), steps=500, batch=16),
        budget=Budget(10, "one H200"),
        max_operations=1e13,
        max_elements=1 << 29,
        max_bytes=1 << 30,
    ),
    "paper": Profile(
        text="openwebtext",
        vocabulary=50_257,
        mask_id=50_256,
        batch=8,
        batches=2_000,
        floor=1.5,
        baseline=Baseline(width=256, hidden=(2048, 2048), steps=500, batch=16),
        budget=Budget(60, "one H200"),
        max_operations=1e13,
        max_elements=1 << 29,
        max_bytes=1 << 30,
    ),
}
"""The profiles by name; widths, steps and ids of ``paper`` are the original's."""
