"""The choice of a profile: by name, or by what this machine has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError

if TYPE_CHECKING:
    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Profile


def choose_profile(task: Task, option: str) -> tuple[str, Profile]:
    """Return the profile called ``option``; ``auto`` is ``gpu`` where there is a device and a profile, else ``cpu``.

    Raises:
        UsageError: if the task has no such profile, or the profile's device is missing.
    """
    name = profile_name(task, option)
    profile = task.profile(name)
    if profile.device == "cuda" and not _cuda_present():
        raise UsageError(f"profile {name} needs a CUDA device and this machine shows none; choose profile cpu")
    return name, profile


def profile_name(task: Task, option: str) -> str:
    """Return ``option``, or what ``auto`` stands for here; nothing is checked."""
    if option != "auto":
        return option
    return "gpu" if "gpu" in task.manifest.profiles and _cuda_present() else "cpu"


def _cuda_present() -> bool:
    """Tell whether there is an NVIDIA device, without importing torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))
