"""Workspaces: what an agent starts from, or one of our solutions laid over it and made."""

from __future__ import annotations

import math
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from re_bench.data.cache import cache_directory
from re_bench.data.files import copy_contents
from re_bench.errors import ReBenchError, UsageError, did_you_mean
from re_bench.gpu import state as gpu_state
from re_bench.processes import print_progress, raise_if_stop_requested
from re_bench.sandbox import open_backend
from re_bench.sandbox.process import run
from re_bench.sandbox.spec import SandboxSpec
from re_bench.task.hidden_paths import hidden_directories
from re_bench.task.manifest import CHEAT
from re_bench.task.prepare import run_preparation

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from re_bench.sandbox.process import Finished
    from re_bench.task.discovery import TaskFolder
    from re_bench.task.manifest import Recipe

_LEFT_OUT = shutil.ignore_patterns("__pycache__", CHEAT)
_READABLE = 0o644
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_TAIL = 2000


def variants(task: TaskFolder) -> list[str]:
    """Return the names of our solutions to a task: baseline, reference, and every cheat."""
    return ["baseline", "reference", *(f"cheats/{name}" for name in task.cheats)]


def make_template(task: TaskFolder, directory: Path, create: Callable[[Path], object]) -> None:
    """Make what all workspaces of a task begin with: the starter, and over it what ``create`` puts there.

    Args:
        task: the task.
        directory: an existing empty directory.
        create: puts the prepared files into a directory.

    Raises:
        ReBenchError: if copying fails.
    """
    with _failing_as(f"{task.name}: the starter cannot be laid out in {directory}"):
        _copy(task.directory / "starter", directory)
    create(directory)


def create_workspace(
    task: TaskFolder,
    target: Path,
    variant: str = "baseline",
    *,
    profile: str,
    template: Path | None = None,
    randomize: Callable[[Path], object] | None = None,
    link: bool = False,
    seed: int | None = None,
) -> None:
    """Make the directory ``target``: the starter, over it the prepared files, the baseline, and ``variant``.

    A cheat that names an honest base finds it in the directory ``base``.

    What the profile needs is prepared first, if it is not there yet. A failure leaves no directory.

    Args:
        task: the task.
        target: the directory, which does not exist yet.
        variant: one of :func:`variants`.
        profile: ``cpu``, ``gpu`` or ``paper``.
        template: what :func:`make_template` has made; it is copied, and nothing is prepared.
        randomize: writes into a directory that was copied from ``template`` what differs from others.
        link: whether the manifest's ``shared_data`` become links to the files of ``template``. Only for a target
            whose user can change neither: whoever writes into one of them changes all.
        seed: without a template, what the workspace's own files are drawn from, so that they are the same each
            time; None for the system's randomness.

    Raises:
        UsageError: if ``target`` exists already, cannot be made, the task has no such variant, or the profile cannot
            be prepared here.
        ReBenchError: if preparing or copying fails.
    """
    if variant not in variants(task):
        names = variants(task)
        known = f"{', '.join(names)}{did_you_mean(variant, names) or did_you_mean(f'cheats/{variant}', names)}"
        raise UsageError(f"{task.name} has no {variant!r}; choose one of: {known}")
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror}; give a directory that does not exist yet") from None
    with _removed_on_failure(target), _failing_as(f"{task.name}: {variant}: cannot be laid out in {target}"):
        if template is None:
            make_template(task, target, partial(run_preparation, task, profile, seed=seed))
        else:
            _copy(template, target, link=task.manifest.shared_data if link else ())
            if randomize is not None:
                randomize(target)
        _copy(task.directory / "baseline", target)
        for layer, name in _layers(task, variant, profile):
            _copy(layer, target / name)


def solution_files(task: TaskFolder, variant: str, profile: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a solution that lie over a workspace with the baseline in it, each with its name there."""
    for layer, name in _layers(task, variant, profile):
        for path in sorted(layer.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.name != CHEAT:
                yield path, str(Path(name) / path.relative_to(layer))


def _layers(task: TaskFolder, variant: str, profile: str) -> Iterator[tuple[Path, str]]:
    """Yield the directories that lie over the baseline, each with its place in the workspace."""
    if variant != "baseline":
        yield task.directory / variant, "."
    if (base := _base(task, variant, profile)) is not None:
        yield task.directory / base, "base"
    if variant == "reference":  # what is too large to be shipped, as a tool of the task has built it
        yield cache_directory() / task.name / "reference" / profile, "."


def _base(task: TaskFolder, variant: str, profile: str) -> str | None:
    """Return the directory of the honest base that a cheat names, if it does."""
    cheat = task.manifest.cheats.get(variant.removeprefix("cheats/")) if variant.startswith("cheats/") else None
    return cheat.expectation(profile).derived_from if cheat is not None else None


def make(
    task: TaskFolder,
    workspace: Path,
    variant: str,
    *,
    profile: str,
    sandbox: str | None = None,
    seed: int = 0,
    gpu: str | None = None,
) -> None:
    """Run the variant's command in the laid-out workspace as an agent would, in the sandbox, if the manifest has one.

    The command sees Python, its packages and the workspace, which it may write, ``RE_BENCH_PROFILE``, and the seed as
    ``RE_BENCH_SEED``. It has the limits of the profile's submissions but for time, and one GPU where the profile's
    device is ``cuda``: the one with the UUID ``gpu``, or CUDA's first. Progress goes to stderr.

    Raises:
        UsageError: if there is no sandbox, or no GPU where one is needed.
        ReBenchError: if the command cannot be run, or fails; then the text ends with what it printed.
    """
    recipe = recipe_of(task, variant)
    if recipe is None:
        return
    words = " ".join(recipe.command)
    print_progress(f"{task.name}: {variant}: {words}, {recipe.time_limit_s:g} s at most")
    with _failing_as(f"{task.name}: {variant}: the command {words} cannot be run in {workspace}"):
        finished = _run(task, workspace.resolve(), recipe, profile, sandbox, seed=seed, gpu=gpu)
    if finished.status != 0 or finished.stopped:
        reason = finished.stopped or f"exit status {finished.status}"
        printed = f"{finished.stdout}{finished.stderr}"[-_TAIL:]
        raise ReBenchError(f"{task.name}: {variant}: the command {words} failed ({reason}):\n{printed}")
    print_progress(f"{task.name}: {variant}: made in {finished.seconds:.1f} s")


def create_and_make(
    task: TaskFolder,
    target: Path,
    variant: str = "baseline",
    *,
    profile: str,
    sandbox: str | None = None,
    template: Path | None = None,
    seed: int = 0,
    gpu: str | None = None,
) -> None:
    """Lay out a solution and run its command, if it has one; see :func:`create_workspace` and :func:`make`."""
    create_workspace(task, target, variant, profile=profile, template=template)
    with _removed_on_failure(target):
        make(task, target, variant, profile=profile, sandbox=sandbox, seed=seed, gpu=gpu)


def recipe_of(task: TaskFolder, variant: str) -> Recipe | None:
    """Return how one of our solutions makes what it submits; None where it has nothing to make."""
    if variant == "reference":
        return task.manifest.reference
    kind, _slash, name = variant.partition("/")
    cheat = task.manifest.cheats.get(name) if kind == "cheats" else None
    return cheat.make if cheat is not None else None


def _run(
    task: TaskFolder, workspace: Path, recipe: Recipe, profile: str, sandbox: str | None, *, seed: int, gpu: str | None
) -> Finished:
    backend = open_backend(sandbox)
    first, *rest = recipe.command
    path, entry = str(workspace), task.profile(profile)
    # CPU seconds are those of a process, which may use all cores for as long as it runs.
    cpu_s = max(entry.limits.cpu_s, math.ceil(recipe.time_limit_s * (os.cpu_count() or 1)))
    spec = SandboxSpec(
        writable={path: workspace},
        environment={"RE_BENCH_PROFILE": profile, "RE_BENCH_SEED": str(seed)},
        directory=path,
        limits=replace(entry.limits, wall_s=recipe.time_limit_s, cpu_s=cpu_s),
        gpu=(gpu or gpu_state.identify().uuid) if entry.device == "cuda" else None,
        hidden=hidden_directories(task.directory),
    )
    with _writable_by_everybody(workspace):
        return run(backend, [backend.python if first == "python" else first, *rest], spec)


@contextmanager
def _writable_by_everybody(workspace: Path) -> Iterator[None]:
    """Let the sandbox, which may be another user, change what is in the workspace, for as long as the block runs."""
    before = _modes(workspace)
    for path, mode in before.items():
        path.chmod(mode | 0o666 | (0o111 if stat.S_ISDIR(mode) else 0))
    try:
        yield
    finally:
        for path, mode in _modes(workspace).items():
            added = mode & _OTHERS_WRITE & ~before.get(path, 0)
            if added:
                with suppress(PermissionError):  # the sandbox's user may have made it
                    path.chmod(mode & ~added)


def _modes(directory: Path) -> dict[Path, int]:
    """Return the mode of the directory and of all that is in it, but for links."""
    modes = {path: path.lstat().st_mode for path in (directory, *directory.rglob("*"))}
    return {path: mode for path, mode in modes.items() if not stat.S_ISLNK(mode)}


def _copy(layer: Path, target: Path, *, link: Collection[str] = ()) -> None:
    """Copy what is in ``layer``; files at or below the names in ``link`` become links to it."""

    def copy(source: str, copied: str) -> None:
        if os.path.relpath(source, layer).partition("/")[0] in link:
            Path(source).chmod(_READABLE)
            Path(copied).hardlink_to(source)
        else:
            _copy_file(source, copied)

    if layer.is_dir():
        shutil.copytree(layer, target, dirs_exist_ok=True, ignore=_LEFT_OUT, copy_function=copy)


def _copy_file(source: str, target: str) -> None:
    raise_if_stop_requested()
    copy_contents(Path(source), Path(target))
    shutil.copystat(source, target)


@contextmanager
def _removed_on_failure(directory: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


@contextmanager
def _failing_as(message: str) -> Iterator[None]:
    """Raise errors of the system as ours, with ``message`` in front."""
    try:
        yield
    except shutil.Error as error:  # of several files: source, copy and reason of each
        raise ReBenchError(f"{message}: {error.args[0][0][2]}") from None
    except OSError as error:
        raise ReBenchError(f"{message}: {error}") from None
