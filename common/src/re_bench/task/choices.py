"""What was chosen for a scoring: the profile, the chat model, and the instance of the task's hidden truth.

The key ``instance`` of a profile in the manifest says what decides its instance. ``"chosen"``: a number, 0 until
``re-bench prepare --instance`` chooses another one, and the same on all machines; the instance is the number.
``"secret"``: this machine's secret, which no other machine has; the instance is the secret's public name. Profiles
without the key have none: their truth is the same everywhere, or new in every workspace or scoring.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from re_bench.data.instances import chosen_instance, pinned_instances, secret_name
from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.task.chat_model import ChatModel
    from re_bench.task.discovery import TaskFolder
    from re_bench.task.manifest import Profile


def choose_profile(task: TaskFolder, option: str) -> tuple[str, Profile]:
    """Return the profile called ``option``; ``auto`` is ``gpu`` where there is a device and a profile, else ``cpu``.

    Raises:
        UsageError: if the task has no such profile, or the profile's device is missing.
    """
    name = profile_name(task, option)
    profile = task.profile(name)
    if profile.device == "cuda" and not _cuda_present():
        raise UsageError(f"profile {name} needs a CUDA device and this machine shows none; choose profile cpu")
    return name, profile


def profile_name(task: TaskFolder, option: str) -> str:
    """Return ``option``, or what ``auto`` stands for here; nothing is checked."""
    if option != "auto":
        return option
    return "gpu" if "gpu" in task.manifest.profiles and _cuda_present() else "cpu"


def _cuda_present() -> bool:
    """Tell whether there is an NVIDIA device, without importing torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def choose_model(task: TaskFolder, profile: str, model: ChatModel | None) -> TaskFolder:
    """Return the task with another chat model in its manifest, and the anchors that were measured with it.

    Without a choice the task stays as it is; so it does with the manifest's own model by any of its names, but for the
    terms that are given.

    Raises:
        UsageError: if the profile asks no real model, or the model's terms are neither given nor known.
    """
    if model is None:
        return task
    if not task.manifest.asks_model(profile):
        keys = task.manifest.model.key if task.manifest.model else ()
        where = f"profile {profile} of {task.name} asks no chat model that could be chosen"
        raise UsageError(f"--model {model.name}: {where}; {f'use --profile {keys[0]}' if keys else 'leave it out'}")
    manifest = task.manifest.with_model(model.name)
    if manifest is task.manifest:
        return replace(task, chat_model=model) if model.terms else task
    return replace(task, manifest=manifest, chat_model=model.with_terms())


def model_details(task: TaskFolder, profile: str) -> dict[str, Any]:
    """Return for a score's details which chat model is asked, if any, and the terms of one that was chosen."""
    if task.manifest.model is None:
        return {}
    name = task.manifest.model.name if task.manifest.asks_model(profile) else "stand-in"
    return {"model": name, **({"model_terms": task.chat_model.terms} if task.chat_model else {})}


def calibrate_command(task: TaskFolder, profile: str) -> str:
    """Return the command that measures the anchors of a profile, with the chosen chat model if there is one."""
    if task.chat_model is None:
        return f"nox -s calibrate-{task.name} -- --profile {profile}"
    return f"re-bench calibrate {task.name} --profile {profile} {shlex.join(task.chat_model.words())}"


Instance = int | str
"""A number that was chosen, or the name of the secret that drew it."""


def instance_of(task: TaskFolder, profile: str) -> Instance | None:
    """Return the instance by which this machine scores from now on; None if the profile has none.

    Raises:
        UsageError: if there is no such profile, or this machine's secret cannot be kept.
        ReBenchError: if choice or secret is damaged.
    """
    drawn_by = task.profile(profile).instance
    if drawn_by is None:
        return None
    return chosen_instance(task.name, profile) if drawn_by == "chosen" else secret_name()


def chosen_number(task: TaskFolder, profile: str) -> int:
    """Return the number of the chosen instance; 0 in a profile where none can be chosen.

    Raises:
        ReBenchError: if the choice is damaged.
    """
    return chosen_instance(task.name, profile) if task.profile(profile).instance == "chosen" else 0


def instance_details(instance: Instance | None) -> dict[str, Instance]:
    """Return what a score's details say of the instance."""
    return {} if instance is None else {"instance": instance}


def instance_in(details: Mapping[str, object]) -> Instance | None:
    """Return the instance that a score's details name; None if they name none."""
    instance = details.get("instance")
    return instance if isinstance(instance, int | str) and not isinstance(instance, bool) else None


def instance_environment(task: TaskFolder, profile: str, instance: Instance | None) -> dict[str, str]:
    """Return the environment variables with which a program prepares, meters and scores by this instance.

    A number is chosen by them. There is nothing to choose where a machine's secret draws.
    """
    return pinned_instances({f"{task.name}/{profile}": instance}) if isinstance(instance, int) else {}
