"""What a task needs of Python packages, as they are installed here: pins for pip, and the distributions of ours."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from re_bench.errors import ReBenchError
from re_bench.task.requirements import CORE, requirements_of, with_dependencies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import Distribution

    from re_bench.task.discovery import Task

_OURS = "re-bench-"


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


def packages_of(task: Task, more: Sequence[str] = ()) -> Needed:
    """Return what a task and ``more`` requirements need, in the versions of this environment.

    Raises:
        UsageError: if something of it is not installed here.
        ReBenchError: if a package of ours cannot be found.
    """
    found = with_dependencies([*requirements_of(task), *more])
    own = [OwnPackage(entry, _package(name)) for name, entry in sorted(found.items()) if name.startswith(_OURS)]
    others = sorted((name, entry.version) for name, entry in found.items() if not name.startswith(_OURS))
    return Needed(tuple(f"{name}=={Version(version).public}" for name, version in others), tuple(own))


def _package(name: str) -> Path:
    """Return the importable package of a distribution of ours."""
    spec = find_spec("re_bench" if name == CORE else name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise ReBenchError(f"the package of the distribution {name} cannot be found")
    return Path(spec.submodule_search_locations[0])
