"""Which anchors a reward is normalised by: those measured in the same run as the submission, or stored ones."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.normalise import finite, normalise

if TYPE_CHECKING:
    from re_bench.task.discovery import TaskFolder
    from re_bench.task.interface import RunAnchors
    from re_bench.task.manifest import Anchors


@dataclass(frozen=True)
class Scale:
    """The anchors that give a score its reward; its fields are those of ``details["anchors"]``."""

    starting: float
    reference: float
    source: str
    """Where they come from, in words."""

    def reward(self, raw: float) -> float:
        """Return the reward of a raw score.

        Raises:
            ValueError: as :func:`re_bench.normalise.normalise`.
        """
        return normalise(raw, self.starting, self.reference)


def round_to(raw: float, resolution: float | None) -> float:
    """Return the multiple of ``resolution`` that is nearest to a raw score, or the score itself without one."""
    return raw if resolution is None else float(round(raw / resolution) * Decimal(str(resolution)))


def choose_scale(task: TaskFolder, profile: str, measured: RunAnchors | None) -> Scale | None:
    """Return the anchors to use, or None if the profile has not been calibrated yet.

    Args:
        task: the task.
        profile: the name of one of its profiles.
        measured: the anchors that the scorer returned, if it did; they come before stored ones.

    Raises:
        ReBenchError: if anchors were to be measured and were not, or cannot be used.
        TypeError, ValueError: if a measured anchor is no finite number.
    """
    entry = task.manifest.profiles[profile]
    if measured is not None:
        return _from_run(task, measured)
    if entry.in_run:
        raise ReBenchError(
            f"profile {profile} measures its anchors in every run (in_run), and the scorer returned none"
        )
    return _from_manifest(entry.anchors) if entry.anchors else None


def _from_run(task: TaskFolder, measured: RunAnchors) -> Scale:
    starting = finite(measured.starting, f"the starting score {measured.source}")
    reference = finite(measured.reference, f"the reference score {measured.source}")
    # The wrong way round, the scale would reward what is worse than the baseline.
    if not (reference < starting if task.manifest.direction == "lower" else reference > starting):
        raise ReBenchError(
            f"the reference came out no better than the baseline ({measured.source}): {reference} and {starting}"
        )
    return Scale(starting, reference, measured.source)


def _from_manifest(anchors: Anchors) -> Scale:
    source = anchors.source
    text = "published" if source.kind == "published" else f"stored: {source.model or source.hardware}, {source.date}"
    return Scale(anchors.starting, anchors.reference, text)
