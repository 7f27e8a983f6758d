"""The time of a correct submission, as both ways of scoring return it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.scoring.scale import RunAnchors


@dataclass(frozen=True)
class Timing:
    """The time of one call on the timed length, measured or modelled."""

    milliseconds: float
    message: str
    """One line for the submission's author."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for the log; ``hardware`` names the device."""
    anchors: RunAnchors | None = None
    """The raw scores of baseline and reference where they were timed in the same run."""
