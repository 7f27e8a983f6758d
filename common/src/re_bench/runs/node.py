"""What another machine must have in common with ours, so that what it scores is what we would have scored."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Self

from re_bench.data.provenance import versions
from re_bench.errors import ReBenchError, UsageError
from re_bench.task.choices import Instance, instance_of
from re_bench.task.discovery import Task, open_task
from re_bench.task.prepare import run_preparation

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Conditions:
    """What scores of one command have in common, wherever they are made. Paths are the same on all machines."""

    directory: Path
    """The task's."""
    profile: str
    manifest: str
    """As JSON."""
    versions: tuple[tuple[str, str], ...]
    """Of the packages that scores depend on."""
    instance: Instance | None

    @classmethod
    def of(cls, task: Task, profile: str) -> Self:
        """Return those of this machine.

        Raises:
            UsageError, ReBenchError: as :func:`re_bench.task.choices.instance_of`.
        """
        manifest = open_task(task.directory).manifest.model_dump_json()  # without an operator's choice of a model
        known = tuple(sorted(versions().items()))
        return cls(task.directory, profile, manifest, known, instance_of(task, profile))

    def check(self, submission: Path | None = None) -> None:
        """Prepare the task here, once, and check that here all is as where this was made.

        Args:
            submission: a directory that must be here, too.

        Raises:
            UsageError: if something differs, or the profile cannot be prepared here.
            ReBenchError: if preparing fails.
        """
        if submission is not None and not submission.is_dir():
            raise UsageError(f"node {platform.node()} does not see {submission}; put it where all nodes do")
        _check(self)


@cache
def _check(expected: Conditions) -> None:
    node = platform.node()
    try:
        task = open_task(expected.directory)
    except ReBenchError as error:
        raise UsageError(f"node {node} has not the task that this machine has: {error}") from None
    present = Conditions.of(task, expected.profile)
    ours, theirs = dict(expected.versions), dict(present.versions)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            raise UsageError(
                f"node {node} has {name} {theirs.get(name, '(none)')}, this machine has {ours.get(name, '(none)')}; "
                "install the same packages on all nodes"
            )
    if present.manifest != expected.manifest:
        raise UsageError(f"node {node} has another manifest in {expected.directory}; put the same checkout on all")
    if present.instance != expected.instance:
        raise UsageError(
            f"node {node} draws instance {present.instance} of {task.name} from its secret, this machine "
            f"{expected.instance}; give all nodes the same file instance.secret in RE_BENCH_CACHE"
        )
    run_preparation(task, expected.profile)
