"""The instance of a task: one drawing of its hidden truth, which scores, sessions and logs name.

The key ``instance`` of a profile in the manifest says what decides it. ``"chosen"``: a number, 0 until ``re-bench
prepare --instance`` chooses another one, and the same on all machines; the instance is the number. ``"secret"``: this
machine's secret, which no other machine has; the instance is the secret's public name. Profiles without the key have
none: their truth is the same everywhere, or new in every workspace or scoring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from re_bench.data.instances import chosen_instance, pinned_instances
from re_bench.data.secret import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.task.discovery import Task

Instance = int | str
"""A number that was chosen, or the name of the secret that drew it."""


def instance_of(task: Task, profile: str) -> Instance | None:
    """Return the instance by which this machine scores from now on; None if the profile has none.

    Raises:
        UsageError: if there is no such profile, or this machine's secret cannot be kept.
        ReBenchError: if choice or secret is damaged.
    """
    drawn_by = task.profile(profile).instance
    if drawn_by is None:
        return None
    return chosen_instance(task.name, profile) if drawn_by == "chosen" else secret_name()


def instance_details(instance: Instance | None) -> dict[str, Instance]:
    """Return what a score's details say of the instance."""
    return {} if instance is None else {"instance": instance}


def instance_in(details: Mapping[str, object]) -> Instance | None:
    """Return the instance that a score's details name; None if they name none."""
    instance = details.get("instance")
    return instance if isinstance(instance, int | str) and not isinstance(instance, bool) else None


def instance_environment(task: Task, profile: str, instance: Instance | None) -> dict[str, str]:
    """Return the environment variables with which a program prepares, meters and scores by this instance.

    A number is chosen by them. There is nothing to choose where a machine's secret draws.
    """
    return pinned_instances({f"{task.name}/{profile}": instance}) if isinstance(instance, int) else {}
