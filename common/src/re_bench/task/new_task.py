"""A new task from the template: small, complete, and such that it validates at once.

``template/`` is a task of the name ``task_name``, whose Python files are Python as they stand. What a choice decides is
``$word`` in them (:class:`string.Template`), a file in ``direction/``, or a line or table of one profile.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Literal

from re_bench.errors import UsageError
from re_bench.task import CANARY
from re_bench.task.discovery import open_task
from re_bench.task.generated import write_generated_files
from re_bench.task.profile_names import PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = Path(__file__).with_name("template")
AGGREGATIONS = {"lower": "min", "higher": "max"}
"""The usual aggregation of each direction."""

_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_STAND_IN = "task_name"
_CLASS_STAND_IN = "TaskName"
_RAW = {"lower": "the root mean squared error", "higher": "the share of the variance that is explained"}
_DESCRIPTIONS = {
    "cpu": "a small machine",
    "gpu": "one GPU",
    "paper": "CHANGE ME: the original data, with published anchors",
}
_TAKEN = {"base", "check", "metric", "solution", _STAND_IN}
"""Modules of a workspace, which lie beside the task's package in the sandbox."""


@dataclass(frozen=True)
class Choices:
    """What a task author decides about a new task."""

    name: str
    """Of the folder and of the importable package."""
    id: str
    title: str
    direction: Literal["lower", "higher"]
    aggregation: Literal["min", "max", "last"]
    profiles: tuple[str, ...]

    @property
    def first_profile(self) -> str:
        """The smallest profile."""
        return next(profile for profile in PROFILES if profile in self.profiles)


def check_name(name: str) -> None:
    """Raise unless a task can be called so.

    Raises:
        UsageError: if it is no name of a package, or that of another one.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r}: a task's name is lower-case letters, digits and _, as in curve_fit, 40 at most")
    if name in _TAKEN or name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise UsageError(f"{name!r} is the name of another Python module, which the task's package would hide")


def write_new_task(parent: Path, choices: Choices, *, in_repository: bool) -> Path:
    """Write the task into the new directory ``parent/NAME`` and return that.

    Args:
        parent: the directory to put it in; it is made if it is not there.
        choices: what the author decided.
        in_repository: whether ``parent`` is the ``tasks`` of a repository; else the task is a package of its own.

    Raises:
        UsageError: if a choice cannot be taken, or the directory is there or cannot be made.
    """
    _check_choices(choices)
    task = parent / choices.name
    values = _values(choices, task, in_repository=in_repository)
    try:
        task.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{task}: {error.strerror}; choose another name or directory") from None
    for source, name in _files(choices, in_repository=in_repository):
        text = Template(source.read_text(encoding="utf-8")).substitute(values).replace(_STAND_IN, choices.name)
        text = text.replace(_CLASS_STAND_IN, "".join(word.capitalize() for word in choices.name.split("_")))
        target = task / name.replace(_STAND_IN, choices.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_sorted_imports(_without_other_profiles(text, choices), choices.name), encoding="utf-8")
    write_generated_files(open_task(task))
    return task


def _check_choices(choices: Choices) -> None:
    check_name(choices.name)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", choices.id):
        raise UsageError(f"--id {choices.id!r}: expected lower-case letters, digits and _")
    title = choices.title
    if not title.strip() or not title.isprintable() or any(mark in title for mark in '"\\|') or len(title) > 80:  # noqa: PLR2004
        raise UsageError(f'--title {title!r}: expected a line of at most 80 characters without ", \\ and |')
    if unknown := [name for name in choices.profiles if name not in PROFILES] or not choices.profiles:
        raise UsageError(f"--profiles {unknown}: expected one or more of {', '.join(PROFILES)}, with commas between")


def _values(choices: Choices, task: Path, *, in_repository: bool) -> dict[str, str]:
    """Return what stands for each ``$word`` of the template."""
    values = {
        "aggregation": choices.aggregation,
        "canary": CANARY,
        "dashed": choices.name.replace("_", "-"),
        "direction": choices.direction,
        "first_profile": choices.first_profile,
        "hook": "../hatch_build.py" if in_repository else "hatch_build.py",
        "id": choices.id,
        "path": choices.name if in_repository else f"./{task.name}",
        "raw": _RAW[choices.direction],
        "title": choices.title,
        "unit": _RAW[choices.direction].removeprefix("the "),
    }
    tables = Template((TEMPLATE / "profile.toml").read_text(encoding="utf-8"))
    values["profiles"] = "".join(
        tables.substitute(
            profile=name, profile_description=_DESCRIPTIONS[name], device="cuda" if name == "gpu" else "cpu"
        )
        for name in PROFILES
        if name in choices.profiles
    )
    return values


def _files(choices: Choices, *, in_repository: bool) -> Iterator[tuple[Path, str]]:
    """Yield the files of the template, each with its name in the task."""
    chosen = TEMPLATE / "direction" / choices.direction
    for top, left_out in (
        (TEMPLATE, {"direction", "profile.toml", "Dockerfile.j2", "__pycache__"}),
        (chosen, {"__pycache__"}),
    ):
        for path in sorted(top.rglob("*")):
            name = path.relative_to(top)
            if path.is_file() and name.parts[0] not in left_out and "__pycache__" not in name.parts:
                if in_repository and path.name == "hatch_build.py":
                    continue  # tasks/hatch_build.py is for all
                yield path, str(name)


def _without_other_profiles(text: str, choices: Choices) -> str:
    """Leave out the lines of tables and dictionaries that begin with a profile that was not chosen."""
    others = "|".join(name for name in PROFILES if name not in choices.profiles)
    return re.sub(rf'^(\| |    ")({others})\b.*\n', "", text, flags=re.MULTILINE) if others else text


def _sorted_imports(text: str, name: str) -> str:
    """Put the imports of the task and of the core in order, which depends on the task's name."""

    def ordered(match: re.Match[str]) -> str:
        return "".join(sorted(match[0].splitlines(keepends=True), key=lambda line: line.split()[1]))

    return re.sub(rf"(?:^from (?:re_bench|{name})\b.*\n)+", ordered, text, flags=re.MULTILINE)
