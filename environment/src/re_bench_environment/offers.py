"""The tasks that a server offers, each in one profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from re_bench.errors import UsageError
from re_bench.task.discovery import find_tasks
from re_bench.task.profile_choice import choose_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from re_bench.task.discovery import Task
    from re_bench.task.manifest import Manifest, Profile

__all__ = ["Offer", "Offers", "find_offers"]


@dataclass(frozen=True)
class Offer:
    """A task and the profile in which it is served."""

    task: Task
    profile_name: str

    @property
    def manifest(self) -> Manifest:
        """The task's manifest."""
        return self.task.manifest

    @property
    def id(self) -> str:
        """The task's id in the protocol."""
        return self.manifest.id

    @property
    def profile(self) -> Profile:
        """What the manifest says of the profile."""
        return self.task.profile(self.profile_name)

    @property
    def spec(self) -> dict[str, Any]:
        """What clients are told of the task, and send back to begin a session; public."""
        return {"id": self.id}


@dataclass(frozen=True)
class Offers:
    """All tasks that are served, by id, and why others are not."""

    by_id: Mapping[str, Offer]
    refused: Mapping[str, str]

    def find(self, spec: Mapping[str, Any]) -> Offer:
        """Return the task that a client asks for. Only its id counts: the rest of a spec is the client's.

        Raises:
            UsageError: if there is no such task here.
        """
        wanted = spec.get("id")
        found = self.by_id.get(wanted) if isinstance(wanted, str) else None
        if found is None:
            shown = repr(wanted)[:80]
            why = self.refused.get(wanted, "") if isinstance(wanted, str) else ""
            why = f" ({why})" if why else ""
            msg = f'there is no task with the id {shown}{why}; a task_spec is {{"id": ID}} with one of: ' + ", ".join(
                self.by_id
            )
            raise UsageError(msg)
        return found


def find_offers(profile: str) -> Offers:
    """Return the tasks that can be served in a profile here: the repository's, then those of installed packages.

    Raises:
        UsageError: if two have the same id, or none can be served.
        ManifestError: if one has a malformed manifest.
    """
    offered: dict[str, Offer] = {}
    refused: dict[str, str] = {}
    for task in find_tasks().values():
        if task.manifest.id in offered:
            other = offered[task.manifest.id].task.directory
            raise UsageError(f"two tasks have the id {task.manifest.id}: {other} and {task.directory}; change one")
        if not task.scorer.is_file():
            refused[task.manifest.id] = "it has no scorer yet"
            continue
        try:
            name, _entry = choose_profile(task, profile)
        except UsageError as error:
            refused[task.manifest.id] = str(error)
            continue
        offered[task.manifest.id] = Offer(task, name)
    if not offered:
        why = "; ".join(f"{name}: {reason}" for name, reason in refused.items()) or "there are no tasks"
        raise UsageError(f"no task can be served in profile {profile}: {why}")
    return Offers(offered, refused)
