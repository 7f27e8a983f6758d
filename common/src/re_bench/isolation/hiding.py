"""Where tasks lie: their references, cheats and truth must not show, wherever a sandbox shows packages."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.tasks import ENTRY_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["secret_directories"]


def secret_directories(task: Path) -> list[Path]:
    """Return the directory ``task`` and those of all other tasks that are here, with the history of a checkout.

    This finds more than :func:`re_bench.tasks.find_tasks`, which refuses a broken task and two of one
    name: hiding too much does no harm, so nothing is refused here.
    """
    tops = {Path(entry) for entry in sys.path} | _packages() | {task.parent}
    checkouts = {parent for start in (Path.cwd(), Path(__file__)) for parent in start.resolve().parents} | {Path.cwd()}
    found = {task, *(top / ".git" for top in checkouts)}
    for top in (*tops, *(checkout / "tasks" for checkout in checkouts)):
        with suppress(OSError):  # it may not be ours to look into
            found.update(manifest.parent for manifest in top.glob("*/task.toml"))
    return sorted({path.resolve() for path in found if _is_directory(path)})


def _is_directory(path: Path) -> bool:
    with suppress(OSError):  # as above
        return path.is_dir()
    return False


def _packages() -> set[Path]:
    """Return where the packages lie that bring a task by an entry point."""
    return {place.parent for entry in entry_points(group=ENTRY_POINTS) for place in _places(entry.module)}


def _places(module: str) -> Iterator[Path]:
    with suppress(ImportError, AttributeError, ValueError):  # a broken package
        found = importlib.util.find_spec(module)
        yield from map(Path, (found.submodule_search_locations if found else None) or [])
