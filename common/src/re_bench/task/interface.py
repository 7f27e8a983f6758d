"""The interface of a task: what its ``score.py`` defines.

A task's folder has a ``score.py`` with one subclass of :class:`Task`. Commands and the server create workspaces with
it, and score submissions with it; :mod:`re_bench.api` has all names that a ``score.py`` imports. Import what takes
long, such as torch, inside the methods that need it: a scorer imports the module for every attempt.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from re_bench.data.files import import_file
from re_bench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from re_bench.scoring.score import Job, RawScore
    from re_bench.task.discovery import Task as TaskFolder

ProfileT = TypeVar("ProfileT")


@dataclass(frozen=True)
class Setup(Generic[ProfileT]):
    """What the data and the workspaces of a task are made for."""

    profile_name: str
    """``cpu``, ``gpu`` or ``paper``."""
    profile: ProfileT
    """The task's own settings of the profile: an entry of :attr:`Task.profiles`."""
    instance: int
    """The number of the chosen instance; 0 in a profile where none can be chosen."""
    log: Callable[[str], None]
    """Prints a line of progress."""


class Task(ABC, Generic[ProfileT]):
    """A task: how its data and workspaces are made, and how a submission is scored."""

    profiles: Mapping[str, ProfileT]
    """The task's own settings by the name of the profile; ``task.toml`` has an entry for each of them."""
    randomized: bool = False
    """Whether workspaces differ, so that :meth:`randomize_workspace` is called for each of them."""

    def prepare(self, setup: Setup[ProfileT]) -> None:
        """Make the data and models that the profile needs in the cache of prepared data, unless they are there.

        Raises:
            UsageError: if they cannot be made here, or there is no such instance.
        """

    def create_workspace(self, setup: Setup[ProfileT], directory: Path) -> None:
        """Add the files that all workspaces have to an existing directory, which holds those of ``starter`` already."""

    def randomize_workspace(self, setup: Setup[ProfileT], directory: Path, seed: int | None) -> None:
        """Add the files in which a workspace differs from others.

        Args:
            setup: what the workspace is for.
            directory: the workspace, after :meth:`create_workspace`.
            seed: what the files are drawn from, so that they are the same each time; None for the system's randomness.
        """

    @abstractmethod
    def score(self, job: Job[ProfileT]) -> RawScore:
        """Return the raw score of a submission.

        Raises:
            InvalidSubmissionError: if the submission is at fault; its author reads the message.
        """


def load_task(folder: TaskFolder) -> Task[Any]:
    """Return the task that a folder's ``score.py`` defines.

    Raises:
        UsageError: if there is no ``score.py``, a package that it needs is missing, or it does not define one task.
    """
    path = folder.scorer
    if not path.is_file():
        raise UsageError(f"{folder.name} has no scorer yet: {path} is missing")
    folder.add_to_path()
    name = f"_score_of_{folder.name}"
    try:
        module = import_file(path, name)
    except ModuleNotFoundError as error:
        remedy = f"pip install -c constraints.txt -e common -e tasks/{folder.name}"
        raise UsageError(f"{path}: the package {error.name} is missing; run: {remedy}") from None
    own = [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == name]
    kinds = [kind for kind in own if issubclass(kind, Task) and not inspect.isabstract(kind)]
    if len(kinds) != 1:
        raise UsageError(f"{path} defines {len(kinds)} tasks; it should define one subclass of re_bench.api.Task")
    task: Task[Any] = kinds[0]()
    return task


def profile_of(task: Task[ProfileT], name: str) -> ProfileT:
    """Return the task's own settings of a profile.

    Raises:
        UsageError: if its ``score.py`` has none.
    """
    if name not in task.profiles:
        raise UsageError(f"{type(task).__name__}.profiles has no {name!r}, which task.toml has; add it")
    return task.profiles[name]
