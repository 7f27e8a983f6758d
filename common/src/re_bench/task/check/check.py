"""Check a task: everything that is wrong with its files, at once, and mend what a program can."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from re_bench.task.check import (
    cheat_checks,
    dockerfile_checks,
    file_checks,
    import_checks,
    instruction_checks,
    manifest_checks,
    project_checks,
    version_checks,
)
from re_bench.task.check.problem import Note, Problem, Report
from re_bench.task.check.task_files import TaskFiles
from re_bench.task.discovery import repository_of_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

CHECKS: tuple[Callable[[TaskFiles], Iterator[Problem | Note]], ...] = (
    manifest_checks.manifest_is_valid,
    manifest_checks.manifest_is_in_order,
    manifest_checks.programs_are_there,
    manifest_checks.instances_are_declared,
    manifest_checks.anchors_are_measured,
    version_checks.version_is_raised,
    file_checks.files_are_there,
    file_checks.python_parses,
    file_checks.scorer_has_its_shape,
    file_checks.canaries_are_there,
    file_checks.records_are_valid,
    file_checks.lists_of_files_are_right,
    cheat_checks.cheats_have_folder_and_table,
    cheat_checks.cheats_say_how_they_fail,
    instruction_checks.instructions_fit_the_manifest,
    instruction_checks.named_files_are_found,
    instruction_checks.numbers_are_those_of_the_sources,
    import_checks.agents_can_import,
    dockerfile_checks.dockerfile_holds,
    project_checks.project_is_right,
    project_checks.locks_are_of_today,
    project_checks.readme_has_the_task,
)
"""In the order of their problems. Each reads files, and runs none of them."""

_MOST_ROUNDS = 3


def check_task(directory: Path, today: dt.date | None = None) -> Report:
    """Return everything that is wrong with the files of a task.

    Args:
        directory: the task's directory.
        today: from which the age of anchors counts; the system's date if None.
    """
    directory = directory.resolve()
    top = repository_of_tasks(directory.parent)
    if top is None and (directory / "__init__.py").is_file():
        note = Note(directory, "installed as a wheel; check the directory that it was made from")
        return Report((), (note,), is_checked=False)
    files = TaskFiles(directory, top, today or dt.datetime.now(dt.UTC).date())
    found = [entry for check in CHECKS for entry in check(files)]
    return Report(
        tuple(entry for entry in found if isinstance(entry, Problem)),
        tuple(entry for entry in found if isinstance(entry, Note)),
    )


def mend_task(directory: Path) -> list[Problem]:
    """Mend what a program can, and return the problems that are mended."""
    return mend_all(lambda: check_task(directory).problems)


def mend_all(problems: Callable[[], Iterable[Problem]]) -> list[Problem]:
    """Mend what can be mended of the problems that a function finds, until it finds no more, and return these."""
    mended: list[Problem] = []
    for _round in range(_MOST_ROUNDS):
        fixable = [problem for problem in problems() if problem.mend is not None and problem not in mended]
        for problem in fixable:
            if problem.mend is not None:
                problem.mend()
        mended += fixable
        if not fixable:
            break
    return mended
