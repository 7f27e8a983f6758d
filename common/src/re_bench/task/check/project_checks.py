"""Checks of ``pyproject.toml``, and of what the repository around a task keeps: pins, locks, the README's table."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from re_bench.data.files import import_file
from re_bench.task.check.dockerfile_checks import locks_of, pinned
from re_bench.task.check.problem import Problem, line_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from re_bench.task.check.problem import Note
    from re_bench.task.check.task_files import TaskFiles

_PROJECTS = ("*", "agents/*", "integrations/*", "tasks/*")
_TASK_TABLE = "| task | what an agent must do |"


def project_is_right(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield what is wrong with ``pyproject.toml``: syntax, the entry point, packages without a pin."""
    path = files.directory / "pyproject.toml"
    if not (text := files.text(path)):
        return
    try:
        project = tomllib.loads(text).get("project", {})
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        yield Problem(path, int(line[1]) if line else 1, f"no valid TOML: {error}")
        return
    if project.get("entry-points", {}).get("re_bench.tasks", {}).get(files.name) != files.name:
        wanted = f'{files.name} = "{files.name}" below [project.entry-points."re_bench.tasks"]'
        yield Problem(path, line_with(text, "entry-points"), f"no entry point that leads to the task: add {wanted}")
    if files.top:
        yield from unpinned(path, files.top)


def unpinned(project: Path, top: Path) -> Iterator[Problem]:
    """Yield the packages that a project of the repository needs and ``constraints.txt`` has no version of."""
    constraints, text = top / "constraints.txt", project.read_text(encoding="utf-8")
    pins, own = {canonicalize_name(name) for name in pinned(constraints.read_text(encoding="utf-8"))}, _own_names(top)
    for line in requirements(tomllib.loads(text).get("project", {})):
        name = required(line)
        if name is None:
            yield Problem(
                project, line_with(text, line), f"{line!r} is no requirement: write PACKAGE, or PACKAGE>=VERSION"
            )
        if name is None or name in own | pins:
            continue
        version = _installed_version(name)
        what = f"{name} has no pin in constraints.txt"
        mend = partial(_pin, constraints, f"{name}=={version}") if version else None
        todo = "type re-bench check --fix, and nox -s lock" if mend else f"add {name}==VERSION, and type nox -s lock"
        yield Problem(project, line_with(text, name), f"{what}: {todo}", mend)


def required(line: str) -> NormalizedName | None:
    """Return the package that a requirement asks for; None if it is no requirement."""
    try:
        return canonicalize_name(Requirement(line).name)
    except InvalidRequirement:
        return None


def requirements(project: dict[str, Any]) -> list[str]:
    """Return all that a project needs, with all its extras."""
    extras = project.get("optional-dependencies", {}).values()
    return [*project.get("dependencies", ()), *(line for lines in extras for line in lines)]


def _own_names(top: Path) -> set[NormalizedName]:
    paths = (path for pattern in _PROJECTS for path in top.glob(f"{pattern}/pyproject.toml"))
    found = (re.search(r'^name = "(.*)"', path.read_text(encoding="utf-8"), re.MULTILINE) for path in paths)
    return {canonicalize_name(match[1]) for match in found if match}


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pin(constraints: Path, pin: str) -> None:
    lines = constraints.read_text(encoding="utf-8").splitlines()
    start = next((index for index, line in enumerate(lines) if "==" in line and not line.startswith("#")), len(lines))
    after = next((index for index in range(start, len(lines)) if lines[index].lower() > pin.lower()), len(lines))
    constraints.write_text("\n".join([*lines[:after], pin, *lines[after:]]) + "\n", encoding="utf-8")


def locks_are_of_today(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield the lock files that the task's Dockerfile installs from and that are missing or stale."""
    path = files.directory / "Dockerfile"
    if files.top is None or not (text := files.text(path)):
        return
    for name in locks_of(text):
        for problem in _lock_problems(files.top, name):
            yield Problem(path, line_with(text, f"images/locks/{name}.txt"), problem)


def stale_locks(top: Path) -> Iterator[Problem]:
    """Yield every lock file of a repository that is missing or stale."""
    for name in _lock_module(top).read_tables():
        for problem in _lock_problems(top, name):
            yield Problem(top / "images" / "locks" / f"{name}.txt", 1, problem)


def _lock_problems(top: Path, name: str) -> Sequence[str]:
    try:
        problems: Sequence[str] = _lock_module(top).problems(name)
    except tomllib.TOMLDecodeError:  # of a project, whose own check tells
        return ()
    return problems


@cache
def _lock_module(top: Path) -> Any:
    """Return the repository's own program that writes lock files, which knows when one is stale."""
    return import_file(top / "images" / "lock.py", "lock_of_repository")


def readme_has_the_task(files: TaskFiles) -> Iterator[Problem | Note]:
    """Yield that the table of tasks in the repository's README has no row for the task."""
    if files.top is None or files.manifest is None:
        return
    path, title = files.top / "README.md", files.manifest.title
    text = files.text(path)
    if _TASK_TABLE in text and f"\n| `{files.name}` |" not in text:
        profiles = ", ".join(f"`{name}`" for name in files.manifest.profiles)
        row = f"| `{files.name}` | {title[0].lower()}{title[1:]} | profiles {profiles} |"
        what = f"the table of tasks has no row for {files.name}: type re-bench check --fix"
        yield Problem(path, line_with(text, _TASK_TABLE), what, partial(add_row, path, _TASK_TABLE, row))


def add_row(path: Path, head: str, row: str) -> None:
    """Add a row at the end of the table of a page whose first line begins with ``head``."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    index = next(number for number, line in enumerate(lines) if line.startswith(head))
    while index < len(lines) and lines[index].startswith("|"):
        index += 1
    path.write_text("".join([*lines[:index], f"{row}\n", *lines[index:]]), encoding="utf-8")
