"""Choose the anchors that turn a raw score into a reward: measured in the same run as the submission, or stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.normalise import finite, normalise

if TYPE_CHECKING:
    from re_bench.task.discovery import TaskFolder
    from re_bench.task.interface import RunAnchors


@dataclass(frozen=True)
class Scale:
    """The anchors that turn a raw score into a reward; ``details["anchors"]`` has the same fields."""

    starting: float
    reference: float
    source: str
    """Text that says where the anchors come from."""

    def reward(self, raw: float) -> float:
        """Return the reward of a raw score."""
        return normalise(raw, self.starting, self.reference)


def choose_scale(task: TaskFolder, profile: str, measured: RunAnchors | None) -> Scale | None:
    """Return the anchors to use, or None if the profile has not been calibrated.

    Anchors that the scorer measured (``measured``) take precedence over stored anchors.

    Raises:
        ReBenchError: if the profile requires measured anchors and there are none, or the measured reference is not
            better than the measured baseline.
        TypeError, ValueError: if a measured anchor is not a finite number.
    """
    entry = task.manifest.profiles[profile]
    if measured is not None:
        return _from_run(task, measured)
    if entry.in_run:
        raise ReBenchError(
            f"profile {profile} measures its anchors in every run (in_run), and the scorer returned none"
        )
    if entry.anchors is None:
        return None
    source = entry.anchors.source
    text = "published" if source.kind == "published" else f"stored: {source.model or source.hardware}, {source.date}"
    return Scale(entry.anchors.starting, entry.anchors.reference, text)


def _from_run(task: TaskFolder, measured: RunAnchors) -> Scale:
    starting = finite(measured.starting, f"the starting score {measured.source}")
    reference = finite(measured.reference, f"the reference score {measured.source}")
    # With anchors in the wrong order, a solution worse than the baseline would get a positive reward.
    if not (reference < starting if task.manifest.direction == "lower" else reference > starting):
        raise ReBenchError(
            f"the reference is not better than the baseline ({measured.source}): {reference} and {starting}"
        )
    return Scale(starting, reference, measured.source)
