"""What a task needs of Python packages, as they are installed here: pins for pip, and the distributions of ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from re_bench.errors import ReBenchError, UsageError
from re_bench.task.discovery import ENTRY_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from re_bench.task.discovery import Task

_OURS = "re-bench-"
_CORE = "re-bench-common"


@dataclass(frozen=True)
class OwnPackage:
    """A package of this repository, which no index has: it is carried along."""

    distribution: Distribution
    directory: Path
    """The importable package."""


@dataclass(frozen=True)
class Needed:
    """What must be installed for a task and its scorer."""

    pins: tuple[str, ...]
    """Lines ``name==version`` for pip, in the order of names: all that is needed, directly or not. A local version such
    as ``+cpu`` is left out, since it says where a build came from."""
    own: tuple[OwnPackage, ...]


def packages_of(task: Task) -> Needed:
    """Return what a task needs, in the versions of this environment.

    Raises:
        UsageError: if something of it is not installed here.
        ReBenchError: if a package of ours cannot be found.
    """
    found = _with_dependencies(_requirements(task))
    own = [OwnPackage(entry, _package(name)) for name, entry in sorted(found.items()) if name.startswith(_OURS)]
    others = sorted((name, entry.version) for name, entry in found.items() if not name.startswith(_OURS))
    return Needed(tuple(f"{name}=={Version(version).public}" for name, version in others), tuple(own))


def _requirements(task: Task) -> list[str]:
    """Return what a task says that it needs, and the core."""
    project = task.directory / "pyproject.toml"
    if project.is_file():
        try:
            stated = tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("dependencies", [])
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"{project}: the task's dependencies cannot be read: {error!r}") from None
        return [_CORE, *stated]
    brought = (entry.dist for entry in entry_points(group=ENTRY_POINTS) if _brings(entry.module, task.directory))
    return [
        _CORE,
        *(text for entry in brought if entry is not None for text in entry.requires or () if ";" not in text),
    ]


def _brings(module: str, directory: Path) -> bool:
    spec = find_spec(module)
    return spec is not None and str(directory) in (spec.submodule_search_locations or ())


def _with_dependencies(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Return the distributions that satisfy requirements, and those that these need, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            found[name] = found.get(name) or _installed(wanted.name)
            needed = map(Requirement, found[name].requires or ())
            waiting += [entry for entry in needed if entry.marker is None or entry.marker.evaluate({"extra": extra})]
    return found


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise UsageError(
            f"the package {name} is not installed here, so that its version is not known; install it"
        ) from None


def _package(name: str) -> Path:
    """Return the importable package of a distribution of ours."""
    spec = find_spec("re_bench" if name == _CORE else name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise ReBenchError(f"the package of the distribution {name} cannot be found")
    return Path(spec.submodule_search_locations[0])
