"""Which anchors a reward is normalised by: those measured in the same run as the submission, or stored ones."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError
from re_bench.normalise import finite, normalise

if TYPE_CHECKING:
    from re_bench.task.anchors import Anchors
    from re_bench.task.discovery import Task


@dataclass(frozen=True)
class RunAnchors:
    """Baseline and reference, measured beside the submission in the same run, in the raw score's unit."""

    starting: float
    reference: float


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


def choose_scale(task: Task, profile: str, measured: RunAnchors | None) -> Scale | None:
    """Return the anchors to use, or None if the profile has not been calibrated yet.

    Args:
        task: the task.
        profile: the name of one of its profiles.
        measured: what the scorer measured of baseline and reference, if it did; it comes before stored anchors.

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


def _from_run(task: Task, measured: RunAnchors) -> Scale:
    starting = finite(measured.starting, "the starting score measured in this run")
    reference = finite(measured.reference, "the reference score measured in this run")
    # The wrong way round, the scale would reward what is worse than the baseline.
    if not (reference < starting if task.manifest.direction == "lower" else reference > starting):
        raise ReBenchError(
            f"the reference came out no better than the baseline in this run: {reference} and {starting}"
        )
    return Scale(starting, reference, "measured in this run")


def _from_manifest(anchors: Anchors) -> Scale:
    source = anchors.source
    text = "published" if source.kind == "published" else f"stored: {source.model or source.hardware}, {source.date}"
    return Scale(anchors.starting, anchors.reference, text)
