"""Workspaces: what an agent finds, or one of our solutions laid over it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from re_bench.errors import ReBenchError, UsageError
from re_bench.isolation.backend import Backend, Surroundings
from re_bench.isolation.limits import Limits
from re_bench.isolation.running import run

if TYPE_CHECKING:
    from pathlib import Path

    from re_bench.tasks import Task

__all__ = ["lay_out", "run_reference_command", "variants"]

_CACHES = shutil.ignore_patterns("__pycache__")


def variants(task: Task) -> list[str]:
    """Return the names of our solutions to a task: baseline, reference, and every cheat."""
    return ["baseline", "reference", *(f"cheats/{name}" for name in task.cheats)]


def lay_out(task: Task, target: Path, variant: str = "baseline") -> None:
    """Make the directory ``target``: the task's starter, the baseline, and ``variant`` laid over them.

    Raises:
        UsageError: if ``target`` exists already, cannot be made, or the task has no such variant.
    """
    if variant not in variants(task):
        msg = f"{task.name} has no {variant!r}; choose one of: {', '.join(variants(task))}"
        raise UsageError(msg)
    try:
        target.mkdir(parents=True)
    except OSError as error:
        msg = f"{target}: {error.strerror}; give a directory that does not exist yet"
        raise UsageError(msg) from None
    for layer in dict.fromkeys(("starter", "baseline", variant)):
        if (task.directory / layer).is_dir():
            shutil.copytree(task.directory / layer, target, dirs_exist_ok=True, ignore=_CACHES)


def run_reference_command(task: Task, workspace: Path, backend: Backend) -> None:
    """Run the manifest's ``reference.command`` in ``workspace`` as an agent would: in the sandbox.

    Raises:
        ReBenchError: if it fails; the text ends with what it printed.
    """
    recipe = task.manifest.reference
    if recipe is None:
        return
    for path in (workspace, *workspace.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o666 | (0o111 if path.is_dir() else 0))  # the sandbox is another user
    limits = Limits(wall_s=recipe.time_limit_s)
    place = str(workspace)
    finished = run(backend, recipe.command, Surroundings(writable={place: workspace}, directory=place, limits=limits))
    if finished.status != 0 or finished.stopped:
        why = finished.stopped or f"exit status {finished.status}"
        msg = f"the reference's command {' '.join(recipe.command)} failed ({why}):\n{finished.stderr[-2000:]}"
        raise ReBenchError(msg)
