"""The tasks that are here: those of the repository, and those that installed packages bring.

A task is a directory with a ``task.toml``. A package from elsewhere offers one by an entry
point in the group ``re_bench.tasks`` whose value names the package that is that directory, or lies in it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.errors import UsageError, did_you_mean
from re_bench.task.manifest_file import ManifestError, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from re_bench.task.chat_model import ChatModel
    from re_bench.task.manifest import Manifest, Profile

ENTRY_POINTS = "re_bench.tasks"


@dataclass(frozen=True)
class TaskFolder:
    """A task: its directory and what its manifest says."""

    directory: Path
    manifest: Manifest
    chat_model: ChatModel | None = None
    """The model that an operator chose instead of the manifest's; ``manifest`` has it too."""

    @property
    def name(self) -> str:
        """The directory's name, by which commands call the task."""
        return self.directory.name

    @property
    def scorer(self) -> Path:
        """The scorer; a task whose scorer is not built yet has none."""
        return self.directory / "score.py"

    @property
    def package(self) -> Path:
        """The directory of the importable package: within the task's, or in a wheel the task's own."""
        inner = self.directory / self.name
        return inner if (inner / "__init__.py").is_file() else self.directory

    def module(self, name: str) -> str:
        """Return the full name of the module ``name`` of the task's package; of a task without one, the name itself."""
        return f"{self.name}.{name}" if (self.package / "__init__.py").is_file() else name

    @property
    def import_directory(self) -> Path:
        """What must be on Python's path so that the modules of the task can be imported where it is not installed."""
        is_package = (self.directory / "__init__.py").is_file()  # as in a wheel
        return self.directory.parent if is_package else self.directory

    def add_to_path(self) -> None:
        """Make the modules of the task importable in this process, also where the task is not installed."""
        if str(self.import_directory) not in sys.path:
            sys.path.insert(0, str(self.import_directory))

    @property
    def cheats(self) -> list[str]:
        """The names of the cheats, in order."""
        return sorted(path.name for path in (self.directory / "cheats").glob("*") if path.is_dir())

    def profile(self, name: str) -> Profile:
        """Return the profile called ``name``.

        Raises:
            UsageError: if the task has no such profile; the text lists those that it has.
        """
        profiles = self.manifest.profiles
        if name not in profiles:
            known = f"{', '.join(profiles) or 'none yet'}{did_you_mean(name, profiles)}"
            raise UsageError(f"{self.name} has no profile {name!r}; it has: {known}")
        return profiles[name]


def open_task(directory: Path) -> TaskFolder:
    """Return the task in ``directory``.

    Raises:
        ManifestError: if its ``task.toml`` is missing, or that or its ``anchors.toml`` malformed.
    """
    directory = directory.resolve()
    return TaskFolder(directory, load(directory / "task.toml"))


def find_tasks() -> dict[str, TaskFolder]:
    """Return all tasks by name: the checkout's, then those of installed packages that no task of it has the name of.

    Raises:
        ManifestError: if one has a malformed manifest.
        UsageError: if two packages bring tasks of the same name, or a package's entry point leads to no task.
    """
    return {name: open_task(directory) for name, directory in task_directories().items()}


def find_usable_tasks() -> tuple[dict[str, TaskFolder], dict[str, ManifestError]]:
    """Return all tasks by name, as :func:`find_tasks` does, and apart from them what is wrong with those malformed.

    Raises:
        UsageError: as :func:`find_tasks`.
    """
    usable, malformed = {}, {}
    for name, directory in task_directories().items():
        try:
            usable[name] = open_task(directory)
        except ManifestError as error:
            malformed[name] = error
    return usable, malformed


def find_task(name: str) -> TaskFolder:
    """Return the task called ``name``: a directory's path, a directory's name, or an id.

    Raises:
        UsageError: if there is none; the text lists those that are here.
    """
    if os.sep in name or (Path(name) / "task.toml").is_file():
        return open_task(Path(name))
    return task_named(name, or_give=" (or give a task's directory)")


def task_named(name: str, or_give: str = "") -> TaskFolder:
    """Return the task that is here under a name or an id that a file tells.

    It is never a directory: a log or a bundle may be a stranger's, and a task's programs run outside of any sandbox.

    Args:
        name: the name or the id.
        or_give: what the message of the error says besides.

    Raises:
        ManifestError: if it has a malformed manifest.
        UsageError: if there is none; the text lists those that are here.
    """
    directories = task_directories()
    if name in directories:
        return open_task(directories[name])
    for directory in directories.values():
        with suppress(ManifestError):  # what is wrong with another task does not matter here
            if (task := open_task(directory)).manifest.id == name:
                return task
    known = f"{', '.join(directories) or 'none'}{did_you_mean(name, directories)}"
    raise UsageError(f"there is no task {name[:200]!r}; known tasks: {known}{or_give}")


def repository_around(path: Path) -> Path | None:
    """Return the checkout of the repository that ``path`` lies in, or None."""
    tops = (path, *path.parents)
    return next((top for top in tops if (top / "common").is_dir() and (top / "noxfile.py").is_file()), None)


def repository_of_tasks(folder: Path) -> Path | None:
    """Return the checkout of the repository whose folder ``tasks`` this is, or None."""
    top = repository_around(folder.resolve())
    return top if top is not None and folder.resolve() == top / "tasks" else None


def task_directories() -> dict[str, Path]:
    """Return the directories of all tasks by name, as :func:`find_tasks` does, also of those with malformed manifests.

    Raises:
        UsageError: as :func:`find_tasks`.
    """
    directories = {directory.name: directory for directory in _repository_tasks()}
    for name, directory in _installed_directories().items():
        directories.setdefault(name, directory)
    return directories


def _repository_tasks() -> list[Path]:
    """Return the task directories of the checkout around the working directory or around this package."""
    top = repository_around(Path.cwd()) or repository_around(Path(__file__).resolve().parent)
    return sorted(path.parent for path in top.glob("tasks/*/task.toml")) if top else []


def _installed_directories() -> dict[str, Path]:
    """Return the tasks of installed packages by name.

    Raises:
        UsageError: if two of them have one name.
    """
    installed: dict[str, Path] = {}
    for directory in _installed_tasks():
        other = installed.setdefault(directory.name, directory)
        if other != directory:
            raise UsageError(f"two tasks are called {directory.name}: {other} and {directory}; uninstall one of them")
    return installed


def _installed_tasks() -> Iterator[Path]:
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        module = importlib.util.find_spec(entry.module)
        if module is None:
            continue  # as after an editable install whose directory was removed
        packages = map(Path, module.submodule_search_locations or [])
        # In an editable install the package lies in the task's directory.
        candidates = (directory for package in packages for directory in (package, package.parent))
        task = next((directory for directory in candidates if (directory / "task.toml").is_file()), None)
        if task is None:
            raise UsageError(f"entry point {entry.name} = {entry.value!r}: no package with a task.toml in it")
        yield task
