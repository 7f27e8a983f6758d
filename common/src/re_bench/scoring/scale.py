"""Which anchors a reward is normalised by: those measured in the same run as the submission, or stored ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from re_bench.errors import ReBenchError, UsageError
from re_bench.normalise import finite, normalise

if TYPE_CHECKING:
    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Anchors, Profile

__all__ = ["ANCHORS", "RunAnchors", "Scale", "Wanted", "choose_scale", "shown_beside", "stored_on"]

Wanted = Literal["run", "stored"]
ANCHORS: tuple[Wanted, ...] = ("run", "stored")
"""What may be asked for where a profile measures its anchors in every run."""


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


def choose_scale(
    task: Task, profile: str, measured: RunAnchors | None, hardware: object, wanted: Wanted = "run"
) -> Scale | None:
    """Return the anchors to use, or None if the profile has not been calibrated yet.

    Args:
        task: the task.
        profile: the name of one of its profiles.
        measured: what the scorer measured of baseline and reference, if it did.
        hardware: the name of the device that it measured on, if it says so.
        wanted: ``stored`` leaves aside what was measured.

    Raises:
        ReBenchError: if anchors were to be measured and were not, or cannot be used.
        TypeError, ValueError: if a measured anchor is no finite number.
        UsageError: if stored anchors are wanted and this device has none.
    """
    entry = task.manifest.profiles[profile]
    if wanted == "run" and measured is not None:
        return _of_run(task, measured)
    if not entry.in_run:
        return _of_manifest(entry.anchors) if entry.anchors else None
    if wanted == "run":
        raise ReBenchError(
            f"profile {profile} measures its anchors in every run (in_run), and the scorer returned none"
        )
    return _of_manifest(stored_on(task, profile, hardware))


def stored_on(task: Task, profile: str, hardware: object) -> Anchors:
    """Return the stored anchors of a device, in a profile that measures its anchors in every run.

    Raises:
        UsageError: if there are none.
    """
    entry = task.manifest.profiles[profile]
    found = entry.anchors_on(hardware)
    if found is None:
        names = ", ".join(str(other.source.hardware) for other in entry.devices) or "no device yet"
        device = "a device without a name" if hardware is None else repr(hardware)
        raise UsageError(
            f"profile {profile} has no stored anchors for {device}; it has them for: {names}; "
            f"run nox -s calibrate-{task.name} -- --profile {profile}, or leave out --anchors stored"
        )
    return found


def shown_beside(profile: Profile, raw: float, hardware: object) -> dict[str, Any]:
    """Return what a score's details say of the stored anchors, where the profile measures them in every run."""
    if not profile.in_run:
        return {}
    stored = profile.anchors_on(hardware)
    if stored is None:
        return {"stored_anchors": None, "stored_reward": None}
    date = stored.source.date.isoformat() if stored.source.date else None
    anchors = {"starting": stored.starting, "reference": stored.reference, "date": date}
    return {"stored_anchors": anchors, "stored_reward": _of_manifest(stored).reward(raw)}


def _of_run(task: Task, measured: RunAnchors) -> Scale:
    starting = finite(measured.starting, "the starting score measured in this run")
    reference = finite(measured.reference, "the reference score measured in this run")
    # The wrong way round, the scale would reward what is worse than the baseline.
    if not (reference < starting if task.manifest.direction == "lower" else reference > starting):
        raise ReBenchError(
            f"the reference came out no better than the baseline in this run: {reference} and {starting}"
        )
    return Scale(starting, reference, "measured in this run")


def _of_manifest(anchors: Anchors) -> Scale:
    source = anchors.source
    words = "published" if source.kind == "published" else f"stored: {source.hardware}, {source.date}"
    return Scale(anchors.starting, anchors.reference, words)
