"""Instances of a profile: variants whose ground truths reveal little about each other.

Instance 0 is the profile in ``profiles.py``; the number of any other instance determines its settings. Numbers and
settings are public. The ground truth is secret, and measuring it takes a sweep at the target's compute.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from small_scaling_law.profiles import SCALES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from small_scaling_law.profiles import Scale

SIZES: dict[str, dict[str, Sequence[Any]]] = {
    "cpu": {"n_layer": (2, 3, 4, 5, 6), "context": (48, 64, 96, 128), "batch": (8, 12, 16)},
    "gpu": {"n_layer": (2, 3, 4, 5, 6), "context": (96, 128, 192), "batch": (8, 12)},
}
"""Possible sizes of an instance, by profile."""
SETTINGS: dict[str, Sequence[Any]] = {
    "learning_rate": (0.7, 0.85, 1.2, 1.4),  # times the profile's value
    "rate_power": (0.7, 1.0, 1.2),  # times the profile's value
    "noise": (0.0, 0.01, 0.02, 0.03),
    "symbols": (20, 28, 40, 56, 80),
}
HARDER = 0.3
"""Nats added to the loss that the starting answer predicts, because the texts of other instances are noisier."""


def scale_of(profile: str, instance: int = 0) -> Scale:
    """Return the sizes and settings of an instance; profiles without experiments have only instance 0.

    Raises:
        ValueError: if there is no such instance.
    """
    scale = SCALES[profile]
    if instance == 0:
        return scale
    fixed = scale.experiments
    if fixed is None or instance < 0:
        raise ValueError(f"profile {profile} has no instance {instance}")

    def drawn_from(choices: dict[str, Sequence[Any]]) -> dict[str, Any]:
        return {name: values[drawn_number(len(values), profile, instance, name)] for name, values in choices.items()}

    sizes, drawn = drawn_from(SIZES[profile]), drawn_from(SETTINGS)
    experiments = replace(
        fixed,
        learning_rate=round(fixed.learning_rate * drawn["learning_rate"], 6),
        rate_power=round(fixed.rate_power * drawn["rate_power"], 6),
        symbols=drawn["symbols"],
        noise=drawn["noise"],
    )
    instance_scale = replace(scale, **sizes, experiments=experiments)
    width, steps, loss = scale.default
    steps = round(scale.flops(width, steps) / instance_scale.flops(width, 1))
    return replace(instance_scale, default=(width, steps, round(loss + HARDER, 6)))


def drawn_number(below: int, *purpose: str | int) -> int:
    """Return a pseudorandom number from 0 to ``below`` - 1 that depends only on ``purpose``."""
    digest = sha256(" ".join(map(str, purpose)).encode()).digest()
    return int.from_bytes(digest[:16], "big") % below
